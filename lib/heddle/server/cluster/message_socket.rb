# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # One end of a channel between two processes. A message has a name and values, and may carry a file descriptor.
      # Only {#wait} blocks.
      class MessageSocket
        # @!attribute what [String] the kind of message
        # @!attribute values [Hash{String => Object}] the values, from JSON
        # @!attribute io [IO, nil] the file descriptor that the message carries
        Message = Data.define(:what, :values, :io) do
          # @param name [String] the name of a value
          # @param type [Class] the class that it must have
          # @return [Object] the value
          # @raise [MalformedError] when it is absent, or of another class
          def fetch(name, type)
            value = values[name]
            value.is_a?(type) ? value : raise(MalformedError, "#{what.inspect} without a valid #{name.inspect}")
          end
        end

        # Raised for received bytes that are not a message. An application can write such bytes by mistake: it may still
        # use the number of a descriptor that it has closed, and this socket may have got the same number. So the
        # receiver must continue after this error.
        class MalformedError < OwnError; end

        # Maximum number of bytes of a message. It is below the kernel's limit for a datagram.
        LIMIT = 131_072
        # Maximum number of bytes of a malformed message that the error message quotes.
        SHOWN = 60
        private_constant :LIMIT, :SHOWN

        # @return [IO] the socket, readable when there is a message
        attr_reader :io
        # @return [SystemCallError, IOError, nil] the error after which nothing more can be read; nil if no such error
        #   has occurred
        attr_reader :failure

        # @return [Array(MessageSocket, MessageSocket)] both ends
        def self.pair = UNIXSocket.pair(:SEQPACKET).map { |io| new(io) }

        # @param io [BasicSocket] a socket of the type SEQPACKET
        def initialize(io)
          @io = io
          @malformed = false
          @failure = nil
        end

        # Sends a message, without blocking.
        # @param what [String] the kind of message
        # @param io [IO, nil] the file descriptor to send with the message
        # @param values [Hash] values that JSON can represent
        # @return [Boolean] whether it was sent; false: the other end is closed or does not read, or the message is too
        #   long
        def send_message(what, io: nil, **values)
          # JSON needs UTF-8, but a request's target and an error's message may contain any bytes.
          values.transform_values! { |value| value.is_a?(String) ? PrintableText.utf8(value) : value }
          text = JSON.generate([what, values])
          return false if text.bytesize > LIMIT

          rights = io ? [Socket::AncillaryData.unix_rights(io)] : []
          @io.sendmsg_nonblock(text, Socket::MSG_NOSIGNAL, nil, *rights, exception: false) != :wait_writable
        rescue SystemCallError, IOError
          false
        end

        # @return [Message, :wait, nil] :wait: there is no message now; nil: the other end is closed, or reading has
        #   failed ({#failure})
        # @raise [MalformedError] the received bytes are not a message; later messages can still be read
        def receive
          # With the length nil, Ruby asks the kernel for the message's size. A buffer for the longest message would
          # cost up to 32 page faults.
          received = @io.recvmsg_nonblock(nil, 0, nil, scm_rights: true, exception: false)
          return :wait if received == :wait_readable

          text, _, _, *controls = received
          return if text.nil? || text.empty?

          ios = controls.flat_map { |control| control.unix_rights || [] }
          parse(text, ios)
        rescue Errno::ECONNRESET # the other end was closed before it had read everything
          nil
        rescue SystemCallError, IOError => e
          @failure = e
          nil
        end

        # Waits until there is a message, or the other end is closed. Only the first malformed message is logged,
        # because many could fill the disk.
        # @param process [String] the name of the process at the other end, for the log
        # @param log [#event]
        # @return [Message, nil] nil: the other end is closed, or reading has failed ({#failure})
        def wait(process, log)
          while (message = receive) == :wait
            @io.wait_readable
          end
          message
        rescue MalformedError => e
          log_malformed(e, process, log)
          retry
        end

        # Receives the messages that have arrived, without blocking. Logs malformed messages as {#wait} does.
        # @param process [String] the name of the process at the other end, for the log
        # @param log [#event]
        # @yieldparam message [Message]
        # @return [Boolean] whether further messages may arrive; false: the other end is closed, or reading has failed
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
