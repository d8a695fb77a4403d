# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # Turns answers into bytes (RFC 9112, 4 and 6; RFC 9110, 6.4 and 15). No I/O. One writer serves a loop.
      class ResponseWriter
        CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n".b.freeze
        LINE_END = "\r\n".b.freeze
        CLOSE = "connection: close\r\n".b.freeze
        KEEP_ALIVE = "connection: keep-alive\r\n".b.freeze
        UPGRADE = "connection: upgrade\r\n".b.freeze
        CHUNKED = "transfer-encoding: chunked\r\n".b.freeze
        private_constant :LINE_END, :CLOSE, :KEEP_ALIVE, :UPGRADE, :CHUNKED

        def initialize(date_line = DateLine.new)
          @date_line = date_line
          @names = {}
        end

        # @param request [RequestHead]
        # @param status [Integer]
        # @param headers [Hash{String => String, Array<String>}]
        # @param length [Integer, nil] of the content in bytes, where it is known; it wins over content-length
        # @param keep_alive [Boolean] whether the server would go on with the connection
        # @param protocol [String, nil] the protocol to upgrade to
        # @param until_close [Boolean] whether content of unknown length ends with the connection; what an application
        #   says about its own chunking is then passed on
        # @return [ResponseHead]
        # @raise [InvalidResponse]
        def head(request, status, headers, length: nil, keep_alive: true, protocol: nil, until_close: false)
          status = protocol ? 101 : check_status(status)
          bytes = Status.line(status).dup
          fields = ResponseFields.new(@names)
          fields.write(headers, bytes)
          bytes << @date_line.line unless fields.date
          bytes << "upgrade: " << protocol << LINE_END if protocol

          length ||= fields.content_length
          framing = framing(request, status, length, fields)
          if until_close && framing == :chunked
            framing = :close
            bytes << CHUNKED if fields.chunked
          end
          keep_alive = false if until_close
          keep_alive &&= request.keep_alive? && !fields.close && framing != :close && framing != :raw
          length = write_framing(bytes, framing, length, request, status)
          write_connection(bytes, keep_alive, request, status, fields)
          ResponseHead.new(status, bytes << LINE_END, framing, length, keep_alive, fields.chunked)
        end

        # @param headers [Hash{String => String, Array<String>}]
        # @return [String] an interim answer 103 (RFC 8297)
        # @raise [InvalidResponse]
        def early_hints(headers)
          bytes = Status.line(103).dup
          ResponseFields.new(@names).write(headers, bytes)
          bytes << LINE_END
        end

        private

        def check_status(status)
          code = status.to_i
          return code if code.between?(200, 999) || code == 101

          raise InvalidResponse, "the status is #{status.inspect}: a final answer has one from 200 to 999"
        end

        def framing(request, status, length, fields)
          return :raw if status == 101 || (request.connect? && status < 300)
          return :none if request.head? || status == 205 || Status.bodiless?(status)
          return :length if length && !fields.chunked

          request.minor == 1 ? :chunked : :close
        end

        # @return [Integer, nil] the length of the content that follows
        def write_framing(bytes, framing, length, request, status)
          case framing
          when :length
            bytes << "content-length: " << length.to_s << LINE_END
            return length
          when :chunked then bytes << CHUNKED
          when :none
            # What a GET would get is told where it is known; 205 is the one such status that says 0.
            length = 0 if status == 205
            tell = status == 205 || (request.head? && !Status.bodiless?(status))
            bytes << "content-length: " << length.to_s << LINE_END if length && tell
            return 0
          end
          nil
        end

        def write_connection(bytes, keep_alive, request, status, fields)
          if status == 101 || (fields.upgrade && status == 426)
            bytes << UPGRADE
            bytes << CLOSE unless keep_alive || status == 101
          elsif !keep_alive
            bytes << CLOSE unless request.connect? && status < 300
          elsif request.minor == 0
            bytes << KEEP_ALIVE
          end
        end
      end
    end
  end
end
