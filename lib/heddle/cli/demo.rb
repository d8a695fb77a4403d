# frozen_string_literal: true

require "erb"
require "heddle/runtime"
require "json"
require "rack/body_proxy"
require "uri"

module Heddle
  module CLI
    # The demo site: one page, and the endpoints that its two panels use. It is an ordinary Rack application, which
    # calls Ruby's own `sleep`.
    class Demo
      Autoloads.add(self, "heddle/cli/demo")

      # Raised for a parameter that the demo does not accept. The client gets 400.
      class BadParameterError < OwnError; end

      # Number of requests that a press of the button sends, and the seconds that each of them sleeps.
      REQUESTS = 50
      SECONDS = 1
      # Sizes of the thread pools that the page compares Heddle with.
      POOLS = [3, 5, 16].freeze
      # Numbers of clients that a visitor can choose, and the seconds for which the clients send requests.
      CROWDS = [1, 16, 64, 256].freeze
      CROWD_SECONDS = 5
      # The body of the responses that these clients (the crowd) get.
      HELLO = "hello\n"
      # The numbers that the page shows, and their labels. The page itself counts the `answers`; the server sends the
      # others.
      VALUES = { "connections" => "Connections", "idle" => "of them idle", "running" => "Requests under way",
                 "limit" => "Request limit", "waiting" => "Requests queued", "answers" => "Responses seen here" }.freeze
      NDJSON = "application/x-ndjson"
      private_constant :NDJSON

      # @param method [Method] its definition must have `def` and `end` on separate lines
      # @return [String] its source text without the indentation
      def self.source_of(method)
        file, line = method.source_location
        lines = File.readlines(file).drop(line - 1)
        indent = lines.first[/\A */]
        last = lines.index { |text| text.start_with?("#{indent}end") }
        lines[0..last].map { |text| text.delete_prefix(indent) }.join
      end

      # @param server [Server, nil] the server that serves the demo, for its addresses and counts
      # @param urls [#call] returns the server's addresses if `server` is nil
      def initialize(server: nil, urls: -> { [] })
        @server = server
        @urls = urls
        @assets = Assets.new
        @page = ERB.new(File.read("#{__dir__}/demo/page.html.erb"), trim_mode: "-").result(binding).freeze
        @routes = { "" => method(:page), "/" => method(:page), "/sleep" => method(:sleeper), "/block" => method(:block),
                    "/fifty" => method(:fifty), "/hello" => method(:hello), "/pulse" => method(:pulse),
                    "/burst" => method(:burst) }.freeze
      end

      # @param env [Hash] the Rack environment
      # @return [Array(Integer, Hash, #each)] a Rack response
      def call(env)
        case env["REQUEST_METHOD"]
        when "GET" then answer_to(env)
        when "HEAD" then [*answer_to(env).first(2), []]
        else Answer.text(405, "Only GET and HEAD.\n", "allow" => "GET, HEAD")
        end
      end

      # Responds after the number of seconds in the query.
      def sleeper(env)
        seconds = number(env, "seconds", 0.0..10.0, 1.0)
        sleep seconds
        Answer.text(200, "slept #{seconds} s\n")
      end

      # Blocks the thread in the way that the query names. Each press of the button allows one such request.
      def block(env)
        blockade = Blockade::WAYS.fetch(query(env)["way"]) do |way|
          raise BadParameterError, "way must be #{Blockade::WAYS.keys.join(" or ")}, but is #{way.inspect}"
        end
        return Answer.text(403, "Only the page's button may send this request.\n") unless @blocks

        @blocks = false
        blockade.call
        Answer.text(200, "blocked\n")
      end

      def hello(_env)
        [200, { "content-type" => "text/plain; charset=utf-8" }, [HELLO]]
      end

      private

      def answer_to(env)
        path = env["PATH_INFO"]
        return @assets.call(env) if path.start_with?(Assets::PREFIX)

        route = @routes[path] or return Answer.text(404, "There is no #{path} here. The demo is at /.\n")
        route.call(env)
      rescue BadParameterError => e
        Answer.text(400, "#{e.message}\n")
      end

      def page(_env) = Answer.html(@page)

      # Sends the fifty requests to this server itself, and streams when each starts and ends. With `way` in the query,
      # it sends one more request, which blocks the thread in that way.
      def fifty(env)
        way = query(env)["way"].to_s
        paths = ["/sleep?seconds=#{SECONDS}"] * REQUESTS
        return Answer.stream(NDJSON, FanOut.new(*own_address, paths)) if way.empty?

        stream_exclusively(env) do
          @blocks = true
          FanOut.new(*own_address, [*paths, "/block?way=#{URI.encode_www_form_component(way)}"])
        end
      end

      # Streams the server's current numbers until the client disconnects or the server stops.
      def pulse(_env) = Answer.stream(NDJSON, Pulse.new(@server))

      # Starts as many clients as the query says. They send requests to /hello, and the response streams their reports.
      def burst(env)
        clients = number(env, "clients", 1..256, 64).to_i
        stream_exclusively(env) do
          Crowd.new(*own_address, "/hello", clients, CROWD_SECONDS, stopping: -> { @server&.stopping? })
        end
      end

      # Streams the body that the block returns. Such a body keeps this server busy, so only one is streamed at a time,
      # and pages of other sites can't request it.
      def stream_exclusively(env)
        return Answer.text(403, "Only this page may send this request.\n") if env["HTTP_SEC_FETCH_SITE"] == "cross-site"
        return Answer.text(503, "Another visitor is running this test. Try again in a moment.\n") if @busy

        body = yield
        @busy = true
        Answer.stream(NDJSON, ::Rack::BodyProxy.new(body) { @busy = @blocks = false })
      end

      # The server's first TCP address, to which the demo sends its own requests. The Host header is not used: a client
      # could set it to make the demo send requests to any other server.
      def own_address
        url = (@server&.urls || @urls.call).find { |one| one.start_with?("http://", "https://") } or
          raise BadParameterError, "This panel works only if `heddle demo` listens on a TCP address."
        url = URI(url)
        [url.hostname == "localhost" ? "127.0.0.1" : url.hostname, url.port]
      end

      def query(env)
        URI.decode_www_form(env["QUERY_STRING"].to_s).to_h
      rescue ArgumentError => e
        raise BadParameterError, "The query can't be read: #{e.message}."
      end

      def number(env, name, range, default)
        value = Float(given = query(env).fetch(name, default), exception: false)
        return value if value && range.cover?(value)

        raise BadParameterError, "#{name} must be a number from #{range.begin} to #{range.end}, such as " \
                                 "#{name}=#{default}, but is #{given.inspect}."
      end

      # The HTML of a group of radio buttons.
      def choice(name, legend, labels, chosen)
        buttons = labels.map do |value, label|
          "<label><input type=\"radio\" name=\"#{name}\" value=\"#{value}\"#{" checked" if value == chosen}>" \
            "<span>#{label}</span></label>"
        end
        "<fieldset class=\"choice\"><legend>#{legend}</legend><div class=\"segments\">#{buttons.join}</div></fieldset>"
      end

      # The HTML of a foldable section with the source code of these methods.
      def sources(*methods)
        codes = methods.map do |method|
          "<pre tabindex=\"0\"><code>#{ERB::Util.html_escape(Demo.source_of(method))}</code></pre>"
        end
        "<details><summary>The code behind it</summary>#{codes.join}</details>"
      end
    end
  end
end
