# frozen_string_literal: true

require "heddle/live"
require "openssl"
require "securerandom"

module Heddle
  module CLI
    # `heddle top --web`: the same view in a browser on this machine, for reading only. Other programs of this machine
    # can reach the port, and a page of any site can make a browser ask it. So each request needs the cookie that the
    # address with the token gives once, the right Host (DNS rebinding), and the right Origin if it has one.
    class TopWeb
      autoload :Feed, "heddle/cli/top_web/feed"
      autoload :Page, "heddle/cli/top_web/page"

      STYLE = File.read(File.join(__dir__, "top_web/top.css"), encoding: "UTF-8").freeze
      private_constant :STYLE

      # @return [String] where a person finds it, once
      attr_reader :url

      # @param client [Server::Control::Client]
      # @param interval [Numeric] seconds between two looks
      # @param port [Integer] 0: the kernel chooses
      # @raise [Server::BootError]
      def initialize(client, interval:, port: 0)
        configuration = Server::Configuration.new(bind: ["127.0.0.1:#{port}"], access_log: false, protect: [])
        @server = Server.new(configuration)
        port = @server.open.first[/\d+\z/].to_i
        @hosts = ["127.0.0.1:#{port}", "localhost:#{port}"]
        @token = SecureRandom.urlsafe_base64(32)
        @secret = SecureRandom.urlsafe_base64(32)
        @cookie = "heddle_top_#{port}"
        @url = "http://#{@hosts.first}/?token=#{@token}"
        @live = Live.new(Page.of(Feed.new(client, interval)))
      end

      # Serves until Ctrl-C.
      # @yield when it is reached
      # @return [void]
      def run(&) = @server.run(self, signals: true, &)

      # @param env [Hash]
      # @return [Array] a Rack response
      def call(env)
        violation = violation_in(env)
        return refuse(violation) if violation
        return admit(env) unless same?(::Rack::Utils.parse_cookies(env)[@cookie], @secret)
        return [200, { "content-type" => "text/css" }, [STYLE]] if env["PATH_INFO"] == Page::STYLE_PATH

        @live.call(env)
      end

      private

      def violation_in(env)
        host = env["HTTP_HOST"]
        return "the field Host must be #{@hosts.join(" or ")}" unless @hosts.include?(host)

        origin = env["HTTP_ORIGIN"]
        own = "http://#{host}"
        return "pages of other origins may not read this" unless origin.nil? || origin == own

        "it can only be read" unless %w[GET HEAD].include?(env["REQUEST_METHOD"]) || (origin == own && message?(env))
      end

      # Without WebSockets the page's messages are POST requests. They choose what it shows, and change nothing else.
      def message?(env) = env["REQUEST_METHOD"] == "POST" && env["PATH_INFO"] == Live::SOCKET_PATH

      # The token is good once: found later, in a history or a log, it is worth nothing.
      def admit(env)
        token = env["QUERY_STRING"][/\Atoken=(.*)/, 1] # nothing in it is escaped
        unless env["PATH_INFO"] == "/" && @token && same?(token, @token)
          return refuse("take the address that heddle top --web has printed; it is good once, for one browser")
        end

        @token = nil
        [303, { "location" => "/", "cache-control" => "no-store", "referrer-policy" => "no-referrer",
                "set-cookie" => "#{@cookie}=#{@secret}; Path=/; HttpOnly; SameSite=Strict" }, []]
      end

      def same?(given, expected)
        given.is_a?(String) && given.bytesize == expected.bytesize &&
          OpenSSL.fixed_length_secure_compare(given, expected)
      end

      def refuse(reason) = [403, { "content-type" => "text/plain", "cache-control" => "no-store" }, ["#{reason}\n"]]
    end
  end
end
