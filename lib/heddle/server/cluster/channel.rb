# frozen_string_literal: true

require "json"
require "socket"

module Heddle
  class Server
    module Cluster
      # Two processes tell each other something: whole messages, each with a descriptor if need be. Nothing here waits.
      class Channel
        # @!attribute what [String] what it is about
        # @!attribute values [Hash{String => Object}]
        # @!attribute io [IO, nil] what came with it
        Message = Data.define(:what, :values, :io)

        # Bytes of a message. The kernel takes somewhat more, and gives the other end what there is room for.
        LIMIT = 131_072
        private_constant :LIMIT

        # @return [IO] for those who wait until something is to be heard
        attr_reader :io

        # @return [Array(Channel, Channel)] both ends
        def self.pair = UNIXSocket.pair(:SEQPACKET).map { |io| new(io) }

        # @param io [BasicSocket] of the kind SEQPACKET
        def initialize(io)
          @io = io
        end

        # @param what [String]
        # @param io [IO, nil] whose descriptor goes along
        # @param values [Hash] as JSON has them
        # @return [Boolean] false: the other end is gone, or does not read, or this is too long
        def say(what, io: nil, **values)
          text = JSON.generate([what, values])
          return false if text.bytesize > LIMIT

          rights = io ? [Socket::AncillaryData.unix_rights(io)] : []
          @io.sendmsg_nonblock(text, Socket::MSG_NOSIGNAL, nil, *rights, exception: false) != :wait_writable
        rescue SystemCallError, IOError
          false
        end

        # @return [Message, :wait, nil] what was said; :wait: nothing for now; nil: nothing any more
        def hear
          received = @io.recvmsg_nonblock(LIMIT, 0, nil, scm_rights: true, exception: false)
          return :wait if received == :wait_readable

          text, _, _, *controls = received
          return if text.nil? || text.empty?

          what, values = JSON.parse(text)
          Message.new(what:, values:, io: controls.filter_map { |control| control.unix_rights&.first }.first)
        rescue SystemCallError, IOError
          nil
        end

        # Hears until there is a message, or nobody is left to say something.
        # @return [Message, nil]
        def wait
          while (message = hear) == :wait
            @io.wait_readable
          end
          message
        end

        # @return [void]
        def close = @io.close
      end
    end
  end
end
