# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Sends several questions to one name server and collects the replies: over UDP, all questions at the same time;
      # over TCP, one after the other. The time limit applies to all questions over UDP together, and again to each
      # question over TCP. Over UDP, every exchange uses a new socket, and so a new source port (RFC 5452).
      #
      # @api private
      class Exchange
        include MonotonicClock

        # Bytes; larger than the size that the query announces, because some servers send larger messages.
        MAX_DATAGRAM = 4_096
        # After this many messages that don't match a question, TCP is used. Such messages come from a faulty server, or
        # from an attacker who guesses ids. Guessing does not help against TCP.
        MAX_UNEXPECTED = 32

        attr_reader :replies

        # @param server [Addrinfo]
        # @param queries [Array<Query>]
        # @param timeout [Numeric] seconds
        # @param use_vc [Boolean] whether to use only TCP
        # @param kept [KeptConnections] keeps TCP connections for later questions
        def initialize(server, queries, timeout:, use_vc:, kept:)
          @server = server
          @queries = queries
          @timeout = timeout
          @use_vc = use_vc
          @kept = kept
          @replies = {}
          @errors = []
        end

        # @return [Exchange] self; {#replies} (Query => Reply) contains the received replies
        def run
          ask
          ask if forget_edns
          self
        end

        # Whether neither a reply nor an error has come within the time limit.
        def silent? = @replies.empty? && @errors.empty?

        # @return [String, nil] why the server has not answered all questions; nil: it has answered all
        def trouble
          failed = @replies.each_value.filter_map { |reply| reply.error if reply.failed? }
          return failed.uniq.join(", ") unless failed.empty?
          return @errors.uniq.join(", ") unless @errors.empty?

          "no response within #{@timeout} s" if @replies.size < @queries.size
        end

        private

        def ask
          ask_by_tcp = @use_vc ? unanswered : over_udp
          ask_by_tcp.each { |query| over_tcp(query) }
        end

        # Removes EDNS from the questions that the server rejected because it does not support EDNS.
        # @return [Boolean] whether there are such questions
        def forget_edns
          rejected = @queries.select { |query| query.edns? && @replies[query]&.edns_unknown? }
          return false if rejected.empty?

          rejected.each { |query| @replies.delete(query) }
          @queries = @queries.map { |query| rejected.include?(query) ? query.without_edns : query }
          true
        end

        # @return [Array<Query>] the questions to send again over TCP
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

        # @return [Boolean] false: no connection was kept, or the server has closed it
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

        # Keeps the connection if the reply was received and there is room. Without a reply, the connection must be
        # closed: a late reply could be mistaken for the reply to another question.
        def converse(connection, query, deadline)
          connection.deadline = deadline
          connection.write([query.bytes.bytesize].pack("n") << query.bytes)
          bytes = read_exactly(connection, read_exactly(connection, 2).unpack1("n"))
          return @errors << "the response over TCP does not match the question" unless accept(bytes)

          connection = nil if @kept.keep(@server, connection)
        ensure
          connection&.close
        end

        def open_socket(&)
          @server.connect(&)
        rescue SystemCallError => e
          @errors << e.message
        end

        def unanswered = @queries.reject { |query| @replies.key?(query) }

        def accept(bytes)
          unanswered.any? do |query|
            reply = Reply.read(bytes, query)
            @replies[query] = reply if reply
          end
        end

        # @return [String, nil] a datagram; nil: the time limit has passed
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
