# frozen_string_literal: true

require "socket"
require "heddle/runtime"

module Heddle
  module Net
    module DNS
      # A DNS server over UDP and TCP. Each query runs in a task of its own, so that slow answers don't delay others.
      #
      #     server = Heddle::Net::DNS::Server.new("127.0.0.1:5353") { |query| query.answer("192.0.2.1") }
      #     Heddle.run { server.run }
      class Server
        # Seconds within which the program must answer a query; after that, the client gets SERVFAIL.
        DEADLINE = 2.0
        QUERIES = 1_000
        TCP_IDLE = 10.0
        TCP_CONNECTIONS = 1_000
        TCP_PER_CLIENT = 32
        RATE = 100
        NETWORKS = %w[loopback private].freeze
        ENDPOINT = /\A(?:\[(?<six>.+)\]|(?<four>[^:]+)):(?<port>\d+)\z/
        # Maximum number of attempts to find a port that is free for both UDP and TCP.
        MAX_TRIES = 16

        # @return [Array<String>] `address:port` of each socket while the server runs, with the actual port if 0 was
        #   given
        attr_reader :addresses

        # @return [Hash{Symbol => Integer}] counters. `queries`: received messages, except datagrams from a port in
        #   {UDPPort::ENDLESS} or from the server's own port number; `ignored`: the excepted datagrams, and messages
        #   that are not queries; `errors`: queries that the server rejected without calling the block; `refused`:
        #   queries that were refused because too many were running; `late`: queries that the block had not answered at
        #   the deadline; `dropped`: responses that were not sent because of the rate limit; `truncated`: responses that
        #   were truncated because of the rate limit or because too many UDP queries were running; `unsent`: responses
        #   that could not be sent; `rejected_connections`: TCP connections beyond `tcp_per_client`
        attr_reader :statistics

        # @param addresses [Array<String>] `address:port` to listen on, over UDP and TCP; port 0: any free port
        # @param deadline [Numeric] seconds within which the program must answer a query
        # @param queries [Integer] maximum number of running queries. One client may have half of this number; its
        #   further queries get REFUSED. All UDP queries together may have three quarters, because their source
        #   addresses may be forged; further UDP queries get a truncated response, so that clients ask again over TCP
        # @param tcp_idle [Numeric] seconds that a TCP connection stays open without a query
        # @param tcp_connections [Integer] maximum number of TCP connections
        # @param tcp_per_client [Integer] maximum number of TCP connections of one client
        # @param rate [Integer, nil] maximum UDP responses per second to a network (/24 of IPv4, /56 of IPv6). Beyond
        #   it, every second response is dropped, and the others are truncated, so that clients use TCP. nil: no limit
        # @param rate_exempt [Array<String>] networks to which neither `rate` nor the shares of `queries` apply; see
        #   {Networks}
        # @param allow [Array<String>] networks whose queries may be forwarded
        # @param on_error [#call, nil] called with an error that the block raised, and the query; nil: the event
        #   `dns_query_failed` reports it
        # @yieldparam query [Query]
        def initialize(*addresses, deadline: DEADLINE, queries: QUERIES, tcp_idle: TCP_IDLE,
                       tcp_connections: TCP_CONNECTIONS, tcp_per_client: TCP_PER_CLIENT, rate: RATE,
                       rate_exempt: ["loopback"], allow: NETWORKS, on_error: nil, &program)
          raise ArgumentError, "Heddle::Net::DNS.serve needs a block that answers queries" unless program
          raise ArgumentError, "Heddle::Net::DNS.serve needs an address such as \"127.0.0.1:5353\"" if addresses.empty?

          @endpoints = addresses.map { |address| endpoint(address) }
          @program = program
          @on_error = Arguments.callable("on_error:", on_error) || method(:report)
          @tcp = { idle: Arguments.limit("tcp_idle:", tcp_idle),
                   connections: Arguments.count("tcp_connections:", tcp_connections, 0),
                   per_client: Arguments.count("tcp_per_client:", tcp_per_client, 0) }
          @allow = Networks.new(allow)
          @exempt = Networks.new(rate_exempt)
          @rate_limit = rate && RateLimit.new(rate, exempt: @exempt)
          @queries = Arguments.count("queries:", queries, 1)
          @deadline = Arguments.limit("deadline:", deadline)
          @in_flight = {}.compare_by_identity # query => the alarm for its deadline
          @clients = Hash.new(0) # source key => number of running queries
          @datagrams = 0 # number of running queries that came over UDP
          @reception = Reception.new(self)
          @statistics = Hash.new(0)
          @networks = {}
          @addresses = []
          @ports = []
        end

        # Serves until {#close} is called or the task is cancelled.
        #
        # @yieldparam server [self] called when the server listens
        # @raise [SystemCallError] when an address can't be listened on
        def run
          Heddle.supervise do |scope|
            @scope = scope
            @alarms = Concurrency::Context.of(Fiber.scheduler).alarms
            @ended = Thread::Queue.new
            open
            yield self if block_given?
            @ended.pop
          ensure
            close
            scope.cancel
          end
          nil
        end

        # Stops listening, and makes {#run} return. Running queries get no response.
        def close
          @in_flight.each_value { |alarm| @alarms.remove(alarm) }
          @in_flight.clear
          @clients.clear
          @datagrams = 0
          @ports.each(&:close)
          [@ports, @addresses].each(&:clear)
          @ended&.close
        end

        # @return [Integer] number of running queries
        def under_way = @in_flight.size

        # @return [Integer] number of open TCP connections
        def tcp_connections = tcp_ports.sum(&:connections)

        # @return [Integer] number of TCP connections accepted since the start
        def tcp_accepted = tcp_ports.sum(&:accepted)

        # @api private
        # @return [Boolean] whether the message gets a response
        def receive(bytes, source)
          @statistics[:queries] += 1
          case (judged = @reception.judge(bytes, source))
          when nil
            count(:ignored)
            false
          when Message
            count(:errors)
            source.respond(judged)
            true
          else
            start(judged)
            true
          end
        end

        # @api private
        def count(what, number = 1)
          @statistics[what] += number
          nil
        end

        # @api private
        # @return [Symbol, nil] `:drop` or `:truncate` the response; nil: send it
        def judge_rate(address)
          verdict = @rate_limit&.judge(address) or return nil
          count(verdict == :drop ? :dropped : :truncated)
          verdict
        end

        # A client with IPv6 can use every address of its /64, so the whole /64 counts as one client.
        # @api private
        def source_key(address) = address.byteslice(0, 8)

        # @api private
        # @return [Networks]
        def networks(names) = @networks[names] ||= Networks.new(names)

        # @api private
        def forward_for?(query) = query.from?(@allow)

        private

        def tcp_ports = @ports.grep(TCPPort)

        def endpoint(text)
          found = ENDPOINT.match(text.to_s)
          raise ArgumentError unless found && found[:port].to_i <= 65_535

          Addrinfo.getaddrinfo(found[:six] || found[:four], found[:port], nil, :DGRAM, nil, Socket::AI_NUMERICHOST).first
        rescue SocketError, ArgumentError
          raise ArgumentError, "#{text.inspect} is not an address to listen on: write an IP address and a port, " \
                               "such as 127.0.0.1:5353 or [::1]:5353"
        end

        def open
          @endpoints.each do |endpoint|
            udp, tcp = open_pair(endpoint)
            @ports.push(udp, tcp)
            @addresses << "#{endpoint.ipv6? ? "[#{endpoint.ip_address}]" : endpoint.ip_address}:#{udp.port}"
            @scope.async(name: "DNS over UDP, #{@addresses.last}") { udp.run }
            @scope.async(name: "DNS over TCP, #{@addresses.last}") { tcp.run }
          end
        end

        # Opens a UDP socket and a TCP socket with the same port. If the port is 0, the kernel chooses a port for UDP.
        # If that port is in use for TCP, tries again with another port.
        def open_pair(endpoint)
          tries ||= 0
          udp = UDPPort.new(endpoint, self)
          [udp, TCPPort.new(Addrinfo.udp(endpoint.ip_address, udp.port), self, **@tcp)]
        rescue Errno::EADDRINUSE
          udp&.close
          raise unless endpoint.ip_port.zero? && (tries += 1) < MAX_TRIES

          retry
        end

        def start(query)
          if full?(query)
            count(:refused)
            return query.respond(:REFUSED)
          end
          if datagrams_full?(query)
            count(:truncated)
            return query.redirect_to_tcp
          end
          task = @scope.async(name: "DNS query") { serve(query) }
          @in_flight[query] = @alarms.add(@deadline, -> { expire(query, task) }, :call)
          @clients[query.source_key] += 1
          @datagrams += 1 if query.transport == :udp
        end

        # One client may have at most half of the maximum number of running queries.
        def full?(query)
          under_way >= @queries || (@clients[query.source_key] >= (@queries + 1) / 2 && !query.from?(@exempt))
        end

        # UDP has its own limit: the addresses of datagrams can be forged, so one sender may look like many clients.
        def datagrams_full?(query)
          query.transport == :udp && @datagrams >= [@queries * 3 / 4, 1].max && !query.from?(@exempt)
        end

        # Does nothing if the query is not running.
        def remove(query)
          alarm = @in_flight.delete(query) or return
          @alarms.remove(alarm)
          @datagrams -= 1 if query.transport == :udp
          key = query.source_key
          @clients.delete(key) if (@clients[key] -= 1) == 0
        end

        def serve(query)
          @program.call(query)
          query.refuse unless query.answered?
          query.respond
        rescue ApplicationFailure => e
          query.respond(:SERVFAIL)
          @on_error.call(e, query)
        ensure
          remove(query)
        end

        # Sends SERVFAIL, and cancels the program's work on the query. Concurrency::Alarms calls this method, so it must
        # not wait.
        def expire(query, task)
          remove(query)
          return if query.sent? # the client reads the response slowly; writes have their own time limit

          count(:late)
          @scope.async(name: "DNS query, too late") { query.respond(:SERVFAIL) }
          task.cancel
        end

        def report(error, query)
          Events.report(:dns_query_failed, question: query.question, error: ErrorText.full(error))
        end
      end
    end
  end
end

# Loaded now rather than by autoload, which would delay the first queries.
Heddle::Autoloads.load_constants(Heddle::Net::DNS)
