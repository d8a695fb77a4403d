# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # A response. Inside the block of {Client#stream} the body can be read piece by piece; otherwise it is a String.
      class Response
        # @return [Integer]
        attr_reader :status

        # @param head [H1::ReceivedResponse]
        # @param body [String, Body] a {Body} is read piece by piece
        # @param origin [OriginPool]
        # @param trailers [Array<String>, nil] trailers, if the body is a String
        def initialize(head, body, origin, target, trailers = nil)
          @head = head
          @status = head.status
          @body = body
          @stream = body unless trailers || body.is_a?(String)
          @trailers = trailers
          @origin = origin
          @target = target
        end

        # @return [String] the URL of the request that got this response, after redirects
        def url = "#{@origin}#{@target}"

        # @return [Array<String>] names (in lower case) and values, alternating, in the order of the response
        def fields = @head.fields

        # @param name [String] in any case
        # @return [String, nil] the field's values, joined by commas
        def [](name)
          Fields.value(@head.fields, Arguments.string("the name", name).downcase)
        end

        # @return [Hash{String => String}] names in lower case. Fields of the same name are joined by commas; Set-Cookie
        #   fields, by line feeds
        def headers
          @headers ||= @head.fields.each_slice(2).with_object({}) do |(name, value), headers|
            headers[name] = [*headers[name], value].join(name == "set-cookie" ? "\n" : ", ")
          end
        end

        # @api private
        # @return [Boolean] whether the body was decoded; `headers` contains Content-Encoding in either case
        def decoded? = Decoder.known?(Decoder.codings(@head))

        # Trailers of an HTTP/2 response, available after the body was read. Trailers of HTTP/1.1 responses are
        # discarded.
        # @return [Hash{String => String}, nil] names in lower case
        def trailers = (@trailers || @stream&.trailers)&.each_slice(2)&.to_h

        # @return [Boolean] 200 to 299
        def success? = @status.between?(200, 299)

        # The whole body, decompressed. Its encoding is the charset in Content-Type; UTF-8 for text and JSON without a
        # charset; otherwise binary.
        # @return [String]
        def body
          @body = @body.read if @body.is_a?(Body)
          unless @encoded
            @body.force_encoding(encoding) unless @body.frozen?
            @encoded = true
          end
          @body
        end
        alias to_s body

        # @return [Object] the parsed JSON of the body
        # @raise [JSON::ParserError]
        def json(**)
          require "json"
          JSON.parse(body, **)
        rescue EncodingError => e
          raise JSON::ParserError, "#{url}: the body is not text in #{body.encoding}: #{e.message}"
        end

        # Yields the body's pieces as they arrive.
        # @yieldparam piece [String]
        # @return [self]
        def each(&block)
          return to_enum unless block

          @body.is_a?(Body) ? @body.each(&block) : block.call(@body)
          self
        end

        # Yields the body's lines without their line ends.
        # @param limit [Integer] maximum bytes of a line
        # @return [self]
        # @raise [BodyTooLargeError] when a line is longer
        def each_line(limit: Defaults::LINE_LIMIT)
          return to_enum(:each_line, limit: limit) unless block_given?

          Arguments.count("limit:", limit, 1)
          rest = String.new
          each do |piece|
            searched = rest.bytesize
            rest << piece.b
            start = 0
            while (ending = rest.byteindex("\n", [searched, start].max))
              yield text_line(rest.byteslice(start, ending + 1 - start), limit)
              start = ending + 1
            end
            rest = rest.byteslice(start..) if start.positive?
            text_line(rest, limit) if rest.bytesize > limit
          end
          yield text_line(rest, limit) unless rest.empty?
          self
        end

        # Yields the events of an event stream (text/event-stream).
        # @yieldparam event [Event]
        # @return [self]
        def events(&block)
          return to_enum(:events) unless block

          reader = EventReader.new
          each { |piece| reader.feed(piece, &block) }
          self
        end

        # Writes the body to a file piece by piece. If the response is cut off, no new file remains, and an existing
        # file is unchanged.
        # @param path [String]
        # @return [Integer] size of the file in bytes
        def save(path)
          # A temporary file with a unique name in the same folder, because other tasks and processes may save to the
          # same path.
          partial = File.join(File.dirname(path), ".#{SecureRandom.hex(8)}.partial")
          size = 0
          File.open(partial, File::WRONLY | File::CREAT | File::EXCL | File::BINARY) do |file|
            each { |piece| size += file.write(piece) }
          end
          File.rename(partial, path)
          size
        ensure
          File.delete(partial) if partial && File.exist?(partial)
        end

        def inspect = "#<#{self.class} #{@status} #{url}>"

        private

        # :stopdoc:

        def text_line(line, limit)
          line = line.delete_suffix("\n").delete_suffix("\r") if line.end_with?("\n")
          return line.force_encoding(encoding) if line.bytesize <= limit

          raise BodyTooLargeError, "a line of #{url} is longer than #{limit} bytes"
        end

        def encoding
          type = self["content-type"]
          return Encoding::BINARY unless type

          charset = type[/;\s*charset="?([\w.:-]+)/i, 1]
          # Encoding.find returns nil for the charset "internal" unless Encoding.default_internal is set.
          return Encoding.find(charset) || Encoding::BINARY if charset

          type.match?(%r{\A(?:text/|application/(?:[\w.-]+\+)?json\b)}i) ? Encoding::UTF_8 : Encoding::BINARY
        rescue ArgumentError
          Encoding::BINARY
        end
      end
    end
  end
end
