# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Asks one name server a few questions at once and collects its replies, within one time limit for each transport.
      # Every exchange has a socket, and so a source port, of its own (RFC 5452).
      #
      # @api private
      class Exchange
        include MonotonicClock

        # Larger than the announced size, because some servers ignore that size.
        MAX_DATAGRAM = 4_096
        # After this many messages that answer no question, TCP is used. Such messages come from a faulty server, or
        # from an attacker that guesses ids, which is useless with TCP.
        MAX_UNEXPECTED = 32

        attr_reader :replies

        # @param server [Addrinfo]
        # @param queries [Array<Query>]
        # @param timeout [Numeric] seconds
        # @param use_vc [Boolean] TCP only
        # @param kept [KeptConnections] where connections of TCP are kept for the next question
        def initialize(server, queries, timeout:, use_vc:, kept:)
          @server = server
          @queries = queries
          @timeout = timeout
          @use_vc = use_vc
          @kept = kept
          @replies = {}
          @errors = []
        end

        # @return [Exchange] self, with {#replies} (Query => Reply) for the questions that the server replied to
        def run
          ask
          ask if forget_edns
          self
        end

        # Whether the server sent nothing within the time limit.
        def silent? = @replies.empty? && @errors.empty?

        # @return [String, nil] the reason why the server has not answered all questions
        def trouble
          failed = @replies.each_value.filter_map { |reply| reply.error if reply.failed? }
          return failed.uniq.join(", ") unless failed.empty?
          return @errors.uniq.join(", ") unless @errors.empty?

          "no answer within #{@timeout} s" if @replies.size < @queries.size
        end

        private

        def ask
          ask_by_tcp = @use_vc ? unanswered : over_udp
          ask_by_tcp.each { |query| over_tcp(query) }
        end

        # Replaces the questions that the server rejected because it does not know EDNS by the same ones without EDNS.
        # @return [Boolean] are there such questions?
        def forget_edns
          rejected = @queries.select { |query| query.edns? && @replies[query]&.edns_unknown? }
          return false if rejected.empty?

          rejected.each { |query| @replies.delete(query) }
          @queries = @queries.map { |query| rejected.include?(query) ? query.without_edns : query }
          true
        end

        # @return [Array<Query>] questions that need TCP
        def over_udp
          unexpected = 0
          open_socket do |socket|
            deadline = now + @timeout
            unanswered.each { |query| socket.send(query.bytes, 0) }
            until unanswered.empty? || unexpected >= MAX_UNEXPECTED
              bytes = receive(socket, deadline) or break
              unexpected += 1 unless accept(bytes)
            end
          end
          cut_off = @replies.select { |_, reply| reply.truncated? }.keys
          unexpected < MAX_UNEXPECTED ? cut_off : cut_off | unanswered
        end

        def over_tcp(query)
          @replies.delete(query)
          deadline = now + @timeout
          ask_kept(query, deadline) || ask_anew(query, deadline)
        rescue IO::TimeoutError
          nil
        rescue SystemCallError, IOError => e
          @errors << e.message
        end

        # @return [Boolean] false when the server has closed the connection, which it may at any time
        def ask_kept(query, deadline)
          connection = @kept.take(@server) or return false
          converse(connection, query, deadline)
          true
        rescue SystemCallError, EOFError
          false
        end

        def ask_anew(query, deadline)
          connector = Connector.new(@server.inspect_sockaddr, timeout: nil)
          converse(connector.connect(deadline:), query, deadline)
        end

        # Keeps the connection when the reply has come, and closes it otherwise: a late reply would be taken for the
        # reply to another question.
        def converse(connection, query, deadline)
          connection.deadline = deadline
          connection.write([query.bytes.bytesize].pack("n") << query.bytes)
          bytes = read_exactly(connection, read_exactly(connection, 2).unpack1("n"))
          return @errors << "an answer by TCP that does not fit the question" unless accept(bytes)

          connection = nil if @kept.keep(@server, connection)
        ensure
          connection&.close
        end

        def open_socket
          socket = Socket.new(@server.pfamily, :DGRAM)
          socket.connect(@server)
          yield socket
        rescue SystemCallError => e
          @errors << e.message
        ensure
          socket&.close
        end

        def unanswered = @queries.reject { |query| @replies.key?(query) }

        def accept(bytes)
          unanswered.any? do |query|
            reply = Reply.read(bytes, query)
            @replies[query] = reply if reply
          end
        end

        # @return [String, nil] nil when the time is over
        def receive(socket, deadline)
          while (bytes = socket.recv_nonblock(MAX_DATAGRAM, exception: false)) == :wait_readable
            left = deadline - now
            return nil unless left.positive? && socket.wait_readable(left)
          end
          bytes
        end

        def read_exactly(connection, size)
          bytes = +"".b
          while bytes.bytesize < size
            part = connection.readpartial(size - bytes.bytesize)
            raise EOFError, "connection closed by the name server" unless part

            bytes << part
          end
          bytes
        end
      end
    end
  end
end
