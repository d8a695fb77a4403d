# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Messages between two processes, each with a descriptor if needed. Nothing here waits.
      class MessageSocket
        # @!attribute what [String] the kind of message
        # @!attribute values [Hash{String => Object}]
        # @!attribute io [IO, nil] the descriptor that came with it
        Message = Data.define(:what, :values, :io) do
          # @param name [String] of a value
          # @param type [Class]
          # @return [Object] the value
          # @raise [MalformedError] when it is absent, or of another class
          def fetch(name, type)
            value = values[name]
            value.is_a?(type) ? value : raise(MalformedError, "#{what.inspect} with #{value.class} as #{name.inspect}")
          end
        end

        # Received bytes that no Heddle process sends. An application may write to a closed descriptor whose number now
        # belongs to this socket, so the receiver must survive them.
        class MalformedError < OwnError; end

        # Maximum bytes of a message. The kernel accepts somewhat more, and truncates to the receiver's buffer.
        LIMIT = 131_072
        # Bytes of a malformed message that its error quotes.
        SHOWN = 60
        private_constant :LIMIT, :SHOWN

        # @return [IO] readable when there is a message
        attr_reader :io
        # @return [SystemCallError, IOError, nil] why nothing more can be read; nil while it can be read, or if the
        #   other end is closed
        attr_reader :failure

        # @return [Array(MessageSocket, MessageSocket)] both ends
        def self.pair = UNIXSocket.pair(:SEQPACKET).map { |io| new(io) }

        # @param io [BasicSocket] of the kind SEQPACKET
        def initialize(io)
          @io = io
          @malformed = false
          @failure = nil
        end

        # @param what [String]
        # @param io [IO, nil] whose descriptor is sent with the message
        # @param values [Hash] as JSON has them
        # @return [Boolean] false: the other end is gone, or does not read, or this is too long
        def send_message(what, io: nil, **values)
          text = JSON.generate([what, values])
          return false if text.bytesize > LIMIT

          rights = io ? [Socket::AncillaryData.unix_rights(io)] : []
          @io.sendmsg_nonblock(text, Socket::MSG_NOSIGNAL, nil, *rights, exception: false) != :wait_writable
        rescue SystemCallError, IOError
          false
        end

        # @return [Message, :wait, nil] :wait: there is no message now; nil: the other end is closed, or see {#failure}
        # @raise [MalformedError] the message is malformed; later messages can still be read
        def receive
          # With nil, Ruby finds the message's size. A buffer for the longest one costs up to 32 page faults.
          received = @io.recvmsg_nonblock(nil, 0, nil, scm_rights: true, exception: false)
          return :wait if received == :wait_readable

          text, _, _, *controls = received
          return if text.nil? || text.empty?

          ios = controls.flat_map { |control| control.unix_rights || [] }
          parse(text, ios)
        rescue Errno::ECONNRESET # closed before it had read everything
          nil
        rescue SystemCallError, IOError => e
          @failure = e
          nil
        end

        # Waits until there is a message, or no writer is left. Of malformed messages only the first is logged: they
        # could fill the disk.
        # @param process [String] at the other end
        # @param log [#event]
        # @return [Message, nil]
        def wait(process, log)
          while (message = receive) == :wait
            @io.wait_readable
          end
          message
        rescue MalformedError => e
          log_malformed(e, process, log)
          retry
        end

        # Receives the messages that have arrived, and logs malformed ones like {#wait}.
        # @param process [String] at the other end
        # @param log [#event]
        # @yieldparam message [Message]
        # @return [Boolean] false: the other end is closed
        def receive_all(process, log)
          while (message = receive).is_a?(Message)
            yield message
          end
          !message.nil?
        rescue MalformedError => e
          log_malformed(e, process, log)
          retry
        end

        # @return [void]
        def close = @io.close

        private

        def log_malformed(error, process, log)
          log.event(:malformed_message, process:, reason: error.message) unless @malformed
          @malformed = true
        end

        def parse(text, ios)
          what, values = decode(text)
          unless what.is_a?(String) && values.is_a?(Hash)
            ios.each(&:close)
            raise MalformedError, "#{text.bytesize} bytes that begin with #{text.byteslice(0, SHOWN).inspect}"
          end

          Message.new(what:, values:, io: ios.first)
        end

        # @return [Array, nil] nil if the text is not JSON in UTF-8
        def decode(text)
          utf8 = text.dup.force_encoding(Encoding::UTF_8)
          array = JSON.parse(utf8) if utf8.valid_encoding?
          array if array.is_a?(Array) && array.size == 2
        rescue JSON::ParserError
          nil
        end
      end
    end
  end
end
