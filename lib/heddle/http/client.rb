# frozen_string_literal: true

require "securerandom"
require "uri"
require "heddle/autoloads"
require "heddle/http"
require "heddle/net"
require "heddle/net/connector"
require "heddle/net/private_networks"
require "heddle/version"

module Heddle
  module HTTP
    # An HTTP client for HTTP/1.1 and HTTP/2. It works in a Heddle loop, in plain threads and after fork. Idle
    # connections belong to the process and outlive loops and threads.
    #
    #     http = Heddle::HTTP::Client.new("https://api.example", timeout: { total: 10 })
    #     http.get("/price", query: { id: 7 }).json
    #     http.post("/orders", json: { id: 7 })
    #     http.stream(:get, "/events") { |response| response.events { |event| puts event.data } }
    #
    # The client sends a request again by itself in two cases, if the body can be sent again. First, the server has
    # closed a reused connection, and either no byte of the request was sent or the request is idempotent (RFC 9110,
    # 9.2.2). Second, an HTTP/2 server has certainly not processed the request. All other failures raise an {Error}. A
    # truncated response is never returned as if it were complete.
    class Client
      Autoloads.add(self, "heddle/http/client")

      # The client of {Heddle::HTTP.get}.
      # @return [Client]
      def self.default
        OriginRegistry.check_ractor
        @default ||= new
      end

      # The statistics of each origin that this process uses, summed over all clients. An origin that has had no
      # connection for a minute is left out, and its counters are lost. Any thread may call this method.
      #
      # - Current numbers: `open` and `idle` connections; requests `waiting` for a connection.
      # - Counters: `requests`; `opened` connections; `waits` for a connection; `stale` connections: those that a
      #   request could not reuse, because the server had closed them or `idle_timeout` had passed.
      # - Totals in seconds: `wait_seconds` for a free connection, `connect_seconds` for opening connections, and
      #   `answer_seconds` from sending a request to receiving the response's head.
      # @return [Hash{String => Hash{Symbol => Numeric}}] in the order in which the origins were first used
      def self.statistics
        OriginRegistry.origins.each_with_object({}) do |origin, all|
          (all[origin.to_s] ||= {}).merge!(origin.statistics) { |_, one, other| one + other }
        end
      end

      # @param base [String, URI, nil] URL that the paths of requests are appended to; nil: each request needs a
      #   complete URL
      # @param headers [Hash] sent with every request; a nil value omits a default field. Content-Length and
      #   Transfer-Encoding are not allowed, because the client sets them
      # @param timeout [Hash, Numeric, nil] seconds by phase, `pool: 5, connect: 5, tls: 5, write: 10, first_byte: 30,
      #   read: 30, total: nil`; Net::HTTP's `open_timeout`, `ssl_timeout`, `write_timeout` and `read_timeout` are
      #   accepted, too; a number limits the request as a whole
      # @param max_connections [Integer] maximum number of connections to one origin; further requests wait in the
      #   order of arrival
      # @param idle_timeout [Numeric] seconds after which an idle connection is closed
      # @param redirects [Integer] maximum number of redirects to follow; 0: responses with status 3xx are returned
      # @param retries [Integer] how often a repeatable request is sent again after status 429, 502, 503 or 504, a
      #   failed connection attempt or a lost connection; see {RequestedRetries}
      # @param proxy [:environment, String, nil] an http:// URL; `:environment`: use the variables `http_proxy`,
      #   `https_proxy` and `no_proxy`; nil: no proxy
      # @param deny_private [Boolean] rejects addresses of this machine and of private networks, also after name
      #   resolution and redirects (protects from server-side request forgery). The client then ignores `:environment`,
      #   and accepts no URL as `proxy`
      # @param body_limit [Integer] maximum size in bytes of a decompressed body in memory
      # @param tls [Hash, nil] see Net::TLS::ClientContext
      # @param http2 [Boolean, :prior_knowledge] true: use HTTP/2 over TLS if the server selects it by ALPN (RFC 9113,
      #   3.2); `:prior_knowledge`: always use it, also without TLS (3.3)
      # @raise [ArgumentError]
      def initialize(base = nil, headers: {}, timeout: {}, max_connections: Defaults::MAX_CONNECTIONS,
                     idle_timeout: Defaults::IDLE_TIMEOUT, redirects: Defaults::REDIRECTS, retries: Defaults::RETRIES,
                     proxy: :environment, deny_private: false, body_limit: Defaults::BODY_LIMIT, tls: nil, http2: true)
        OriginRegistry.check_ractor
        Arguments.refuse("http2:", http2, "true, false or :prior_knowledge") unless
          http2 in true | false | :prior_knowledge

        @settings = ConnectionSettings.new(tls: nil, proxy:, deny_private:, http2:,
                                           idle_timeout: Arguments.wait("idle_timeout", idle_timeout),
                                           max_connections: Arguments.count("max_connections", max_connections, 1))
        @settings = @settings.with(tls: tls_context(tls)) if tls
        if deny_private && proxy.is_a?(String)
          raise ArgumentError, "deny_private: and proxy: exclude each other, because the proxy #{Proxy.mask(proxy)} " \
                               "would connect to the servers"
        end

        @limits = TimeLimits.from(timeout)
        @redirects = Arguments.count("redirects", redirects, 0)
        @retries = Arguments.count("retries", retries, 0)
        @body_limit = Arguments.count("body_limit", body_limit, 0)
        @url_parser = URLParser.new(base, @settings)
        @requests = RequestBuilder.new(@url_parser, RequestBuilder.add_defaults(headers))
      end

      # @!method get(url, query: nil, headers: nil, timeout: nil)
      # @param url [String, URI] a complete URL, or a path relative to the base
      # @param query [Hash, nil] added to the URL's own query
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
      # @param body [String, #read, #each, nil] an IO whose size is known is sent with Content-Length; any other IO, and
      #   an object with `each`, in chunks
      # @param json [Object, nil] sent as JSON
      # @param form [Hash, nil] sent as application/x-www-form-urlencoded
      # @param multipart [Hash, nil] sent as multipart/form-data; values are Strings and IOs
      # @return [Response] with its whole body
      # @raise [Error]
      # @raise [IOError] if an IO has fewer bytes than its size. Exceptions of the body object's own methods pass
      #   through
      def request(method, url, query: nil, headers: nil, body: nil, json: nil, form: nil, multipart: nil, timeout: nil)
        request = @requests.build(method, url, query, headers, given(body, json, form, multipart))
        perform(request, timeout) do |exchange, head, answered|
          decoder = Decoder.for(head, answered, @body_limit)
          decoder ? Body.new(exchange, decoder, @body_limit).read : exchange.read_all(@body_limit)
        end
      end

      # Sends a request. The block reads the response's body piece by piece while it arrives. If the block leaves a part
      # unread, the client closes the connection (HTTP/1.1) or resets the stream (HTTP/2).
      # @yieldparam response [Response]
      # @return what the block returns
      def stream(method, url, query: nil, headers: nil, body: nil, json: nil, form: nil, multipart: nil, timeout: nil)
        raise ArgumentError, "stream needs a block that takes the response" unless block_given?

        request = @requests.build(method, url, query, headers, given(body, json, form, multipart))
        result = nil
        perform(request, timeout) do |exchange, head, answered|
          body = Body.new(exchange, Decoder.for(head, answered, nil), @body_limit)
          result = Lock.interruptible(:immediate) { yield Response.new(head, body, answered.origin, answered.target) }
          body
        end
        result
      end

      # Reads an event stream (WHATWG HTML, 9.2). When the response ends or the connection is lost, the client
      # reconnects with Last-Event-ID. Returns when the server responds with 204, or when the block breaks.
      #
      #     http.events("/prices") { |event| puts event.data }
      #
      # @param last_id [String] id of the last event that the application has already read
      # @param pause [Numeric] seconds before a reconnect, until the server sets another pause. While the server can't
      #   be reached, and after status 429, 502, 503 or 504, the pause grows to at most a minute; Retry-After is
      #   respected
      # @param options [Hash] options of {#stream}
      # @yieldparam event [Event]
      # @raise [Error] if reconnecting can't help, for example because the server responds with 404
      def events(url, last_id: "", pause: Defaults::EVENTS_PAUSE, **options, &block)
        raise ArgumentError, "events needs a block that takes each event" unless block

        EventStream.new(self, url, last_id:, pause:, **options).each(&block)
      end

      # @return [String]
      def inspect = "#<#{self.class} #{@url_parser}>"

      private

      # :stopdoc:

      # @return [Hash, nil] the kinds of content that the caller passed; nil: none
      def given(body, json, form, multipart)
        { body:, json:, form:, multipart: }.compact unless body.nil? && json.nil? && form.nil? && multipart.nil?
      end

      # @yield [Exchange, H1::ReceivedResponse, Request] exchange, head and request of the final response; the block
      #   returns the body
      # @return [Response]
      def perform(request, timeout, &)
        limits = timeout ? TimeLimits.from(timeout, @limits) : @limits
        deadline = limits.total && (MonotonicClock.now + limits.total)
        redirects = @redirects
        retries = RequestedRetries.new(@retries, deadline) if @retries.positive?
        # not `loop`, which would rescue a StopIteration raised by the block or by the request's body object
        until (outcome = attempt(request, limits, deadline, redirects, retries, &)).is_a?(Response)
          outcome.equal?(request) ? retries.pause : redirects -= 1
          request = outcome
        end
        outcome
      end

      def attempt(...) = Account.wait_for(Account::HTTP) { Lock.interruptible(:on_blocking) { try(...) } }

      # @return [Response, Request] the final response, or the request to send next: the same one again, or the one
      #   that a redirect leads to
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
        Net::TLS::ClientContext.for({ protocols: @settings.protocols, **Arguments.fields("tls:", options) })
      end
    end
  end
end

# These files are loaded now rather than by autoload, for three reasons. Every request needs them, so the first
# request's time limits would include the loading. A thousand tasks with simultaneous first requests would each search
# the whole load path. And when a time limit interrupts a thread that waits for another thread's load, Ruby may fail to
# wake the next waiting thread.
Heddle::Autoloads.load("heddle/http/client")
require "heddle/http/h1/received_response"
require "heddle/http/h2/received_response"
