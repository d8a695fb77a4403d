# frozen_string_literal: true

require "securerandom"
require "uri"
require "heddle/autoloads"
require "heddle/http"
require "heddle/net"
require "heddle/net/connector"
require "heddle/net/private_networks"
require "heddle/version"
require "heddle/http/client/defaults"

module Heddle
  module HTTP
    # A client of HTTP/1.1 and HTTP/2. Works in a Heddle loop, in plain threads and after fork; the connections that it
    # keeps belong to the process, and outlive loops and threads.
    #
    #     http = Heddle::HTTP::Client.new("https://api.example", timeout: { total: 10 })
    #     http.get("/price", query: { id: 7 }).json
    #     http.post("/orders", json: { id: 7 })
    #     http.stream(:get, "/events") { |response| response.events { |event| puts event.data } }
    #
    # A request is sent a second time only if it is idempotent (RFC 9110, 9.2.2) and went over a connection that the
    # server has closed meanwhile, or if nothing of it was sent. A request that fails half-way raises an {Error}; a
    # truncated response is never returned as if it were whole.
    class Client
      Autoloads.add(self, "heddle/http/client")

      # The client of {Heddle::HTTP.get}.
      # @return [Client]
      def self.default
        OriginRegistry.check_ractor
        @default ||= new
      end

      # The statistics of each origin that this process has connected to, summed up over all clients. Any thread may
      # call it. Now: connections that are `open` and `idle`, requests that are `waiting` for one. Since the start:
      # `requests`, connections `opened`, `waits` for one, and `stale`, idle connections that the server had closed.
      # Seconds: `wait_seconds` of those waits, `connect_seconds` of opening connections, and `answer_seconds` from
      # requests to the heads of their responses.
      # @return [Hash{String => Hash{Symbol => Numeric}}] in the order in which the origins were first used
      def self.statistics
        OriginRegistry.origins.each_with_object({}) do |origin, all|
          (all[origin.to_s] ||= {}).merge!(origin.statistics) { |_, one, other| one + other }
        end
      end

      # @param base [String, nil] URL before the paths of requests; nil: each request has a whole URL
      # @param headers [Hash] of every request; nil as a value leaves one of the defaults out; Content-Length and
      #   Transfer-Encoding are the client's alone
      # @param timeout [Hash, Numeric, nil] seconds by phase, `pool: 5, connect: 5, tls: 5, write: 10, first_byte: 30,
      #   read: 30, total: nil`; Net::HTTP's `open_timeout`, `write_timeout`, `read_timeout` are understood; a number is
      #   the limit of everything together
      # @param max_connections [Integer] to one origin; further requests wait, first come first served
      # @param idle_timeout [Numeric] seconds after which an idle connection is closed
      # @param redirects [Integer] that are followed; 0: responses 3xx are returned
      # @param retries [Integer] how often a request that may be repeated is sent again after 429, 502, 503 and 504, and
      #   when no connection could be made, see {RequestedRetries}
      # @param proxy [:environment, String, nil] an http:// URL; `:environment`: as `http_proxy`, `https_proxy` and
      #   `no_proxy` say
      # @param deny_private [Boolean] connects to no address of this machine or of a private network, even if a name
      #   or a redirect leads there (server-side request forgery); uses no proxy
      # @param body_limit [Integer] bytes of a body in memory, decompressed
      # @param tls [Hash, nil] see Net::TLS::ClientContext
      # @param http2 [Boolean, :prior_knowledge] true: over TLS, where the server chooses it by ALPN (RFC 9113, 3.2);
      #   `:prior_knowledge`: always, also without TLS (3.3)
      # @raise [ArgumentError]
      def initialize(base = nil, headers: {}, timeout: {}, max_connections: Defaults::MAX_CONNECTIONS,
                     idle_timeout: Defaults::IDLE_TIMEOUT, redirects: Defaults::REDIRECTS, retries: Defaults::RETRIES,
                     proxy: :environment, deny_private: false, body_limit: Defaults::BODY_LIMIT, tls: nil, http2: true)
        OriginRegistry.check_ractor
        unless [true, false, :prior_knowledge].include?(http2)
          raise ArgumentError, "http2: is #{http2.inspect}, but must be true, false or :prior_knowledge"
        end

        @settings = ConnectionSettings.new(tls: nil, proxy:, deny_private:, idle_timeout:, http2:,
                                           max_connections: count("max_connections", max_connections, 1))
        @settings = @settings.with(tls: tls_context(tls)) if tls
        if deny_private && proxy.is_a?(String)
          raise ArgumentError, "deny_private: has no effect behind the proxy #{Proxy.mask(proxy)}, which connects to " \
                               "the servers"
        end

        @limits = TimeLimits.from(timeout)
        @redirects = redirects
        @retries = count("retries", retries, 0)
        @body_limit = body_limit
        @url_parser = URLParser.new(base, @settings)
        @requests = RequestBuilder.new(@url_parser, RequestBuilder.add_defaults(headers))
      end

      # @!method get(url, query: nil, headers: nil, timeout: nil)
      # @param url [String] a whole URL, or a path below the base
      # @param query [Hash, nil] added to the URL's own
      # @param headers [Hash, nil] replace the client's fields of the same names
      # @param timeout [Hash, Numeric, nil] replaces the client's time limits
      # @return [Response]
      # @raise [Error]
      def get(url, ...) = request("GET", url, ...)

      # @param (see #get)
      def head(url, ...) = request("HEAD", url, ...)

      # @param (see #request)
      def post(url, ...) = request("POST", url, ...)

      # @param (see #request)
      def put(url, ...) = request("PUT", url, ...)

      # @param (see #request)
      def patch(url, ...) = request("PATCH", url, ...)

      # @param (see #request)
      def delete(url, ...) = request("DELETE", url, ...)

      # @param method [String, Symbol]
      # @param body [String, #read, #each, nil] an IO that has a size is sent with it, else in chunks
      # @param json [Object, nil] sent as JSON
      # @param form [Hash, nil] sent as application/x-www-form-urlencoded
      # @param multipart [Hash, nil] sent as multipart/form-data; values are Strings and IOs
      # @return [Response] with its whole body
      # @raise [Error]
      # @raise [IOError] an IO has fewer bytes than its size; what the body itself raises is raised here, too
      def request(method, url, query: nil, headers: nil, body: nil, json: nil, form: nil, multipart: nil, timeout: nil)
        request = @requests.build(method, url, query, headers, given(body, json, form, multipart))
        perform(request, timeout) do |exchange, head, answered|
          decoder = Decoder.for(head, answered, @body_limit)
          decoder ? Body.new(exchange, decoder, @body_limit).read : exchange.read_all(@body_limit)
        end
      end

      # Sends a request; inside the block, the response's body is read as it comes. If the block leaves a part unread,
      # the connection is closed.
      # @yieldparam response [Response]
      # @return what the block returns
      def stream(method, url, query: nil, headers: nil, body: nil, json: nil, form: nil, multipart: nil, timeout: nil)
        raise ArgumentError, "stream needs a block that takes the response" unless block_given?

        request = @requests.build(method, url, query, headers, given(body, json, form, multipart))
        result = nil
        perform(request, timeout) do |exchange, head, answered|
          body = Body.new(exchange, Decoder.for(head, answered, nil), @body_limit)
          result = yield Response.new(head, body, answered.origin, answered.target)
          body
        end
        result
      end

      # Reads a stream of events for as long as the server wants: connects again when the connection is lost, with
      # Last-Event-ID (WHATWG HTML, 9.2). Returns when the server answers 204, and when the block breaks.
      #
      #     http.events("/prices") { |event| puts event.data }
      #
      # @param last_id [String] of an event that was read before
      # @param pause [Numeric] seconds before it connects again, until the server sets another pause. While the server
      #   can't be reached, and after 429, 502, 503 and 504, the pause grows to a minute; Retry-After is obeyed
      # @param options [Hash] of {#stream}
      # @yieldparam event [Event]
      # @raise [Error] that a new connection does not solve, such as another status
      def events(url, last_id: "", pause: Defaults::EVENTS_PAUSE, **options, &block)
        raise ArgumentError, "events needs a block that takes each event" unless block

        EventStream.new(self, url, last_id:, pause:, **options).each(&block)
      end

      # @return [String]
      def inspect = "#<#{self.class} #{@url_parser}>"

      private

      # :stopdoc:

      # @return [Hash, nil] the given kinds of content; nil: there are none
      def given(body, json, form, multipart)
        { body:, json:, form:, multipart: }.compact unless body.nil? && json.nil? && form.nil? && multipart.nil?
      end

      # @yield [Exchange, H1::ReceivedResponse, Request] of the final response; the block returns the body
      # @return [Response]
      def perform(request, timeout, &)
        limits = timeout ? TimeLimits.from(timeout, @limits) : @limits
        deadline = limits.total && (MonotonicClock.now + limits.total)
        redirects = @redirects
        retries = RequestedRetries.new(@retries, deadline) if @retries.positive?
        # not `loop`, which would swallow a StopIteration of the block, or of a body that is sent
        until (outcome = attempt(request, limits, deadline, redirects, retries, &)).is_a?(Response)
          outcome.equal?(request) ? retries.pause : redirects -= 1
          request = outcome
        end
        outcome
      end

      def attempt(...) = Account.wait_for(Account::HTTP) { try(...) }

      # @return [Response, Request] a Request must be sent next: the same one again, or the request of a redirect
      def try(request, limits, deadline, redirects, retries)
        exchange = Exchange.new(request, limits, deadline)
        head = retries ? retries.head(request, exchange) : exchange.head
        return request unless head
        return drain(exchange) && request if retries&.after?(request, head)

        location = @redirects.positive? ? Redirect.location(head) : nil
        unless location
          body = yield(exchange, head, request)
          return Response.new(head, body, request.origin, request.target, exchange.trailers)
        end
        raise RedirectError, "more than #{@redirects} redirects; the last was to #{location}" unless redirects.positive?

        drain(exchange)
        Redirect.follow(request, head.status, *@url_parser.follow(location, request.origin, request.target))
      ensure
        exchange&.finish
      end

      # Reads the rest of a body if it is short, so that the connection can serve the next request.
      # @return [true]
      def drain(exchange)
        exchange.read_all(65_536)
        true
      rescue Error
        true # the connection is closed
      end

      def tls_context(options)
        require "heddle/net/tls/client_context"
        Net::TLS::ClientContext.for({ protocols: @settings.protocols, **options })
      end

      def count(name, value, least)
        return value if value.is_a?(Integer) && value >= least

        raise ArgumentError, "#{name} is #{value.inspect}, but must be an Integer of at least #{least}"
      end
    end
  end
end

# Not by autoload: each request needs these files, and the time limits of the first one would include their loading. A
# thousand tasks that make their first requests together would each search the whole load path. And where a time limit
# interrupts a thread that waits for another one to load a file, Ruby may not wake the next one.
Heddle::Autoloads.load("heddle/http/client")
require "heddle/http/h1/received_response"
require "heddle/http/h2/received_response"
