# frozen_string_literal: true

require "heddle"

module Heddle
  module CLI
    # The demo site: one page, and the endpoints that its panels drive.
    #
    # It is an ordinary Rack 3 application. What it knows of Heddle is the Fiber scheduler that
    # serves it; `sleep` in it is Ruby's own.
    class Demo
      autoload :Answer, "heddle/cli/demo/answer"
      autoload :Assets, "heddle/cli/demo/assets"
      autoload :BadParameter, "heddle/cli/demo/parameters"
      autoload :Facts, "heddle/cli/demo/facts"
      autoload :FanOut, "heddle/cli/demo/fan_out"
      autoload :Page, "heddle/cli/demo/page"
      autoload :Panel, "heddle/cli/demo/panel"
      autoload :Parameters, "heddle/cli/demo/parameters"
      autoload :Panels, "heddle/cli/demo/panels"
      autoload :Song, "heddle/cli/demo/song"

      # The key of the env under which panels find the server's own URL.
      URL = "heddle.demo.url"

      # @param url [String, nil] where the server itself is reached; nil: where the request says
      # @return [#call] a Rack 3 application
      def self.app(url: nil)
        new(url:)
      end

      # @param panels [Array<Class>] subclasses of Panel, in the page's order
      # @param url [String, nil] where the server itself is reached
      def initialize(panels: Panels::ALL, url: nil)
        @url = url
        @panels = panels.map(&:new).freeze
        @assets = Assets.new
        @page = Page.new(@panels, @assets)
        @routes = @panels.map(&:routes).reduce({}, :merge).freeze
      end

      # @param env [Hash] the Rack environment
      # @return [Array(Integer, Hash, #each)] a Rack answer
      def call(env)
        answer = allowed?(env) ? answer_to(env) : Answer.text(405, "Only GET and HEAD.\n", "allow" => "GET, HEAD")
        return answer unless env["REQUEST_METHOD"] == "HEAD"

        status, headers, = answer
        [status, headers, []]
      end

      private

      def allowed?(env)
        %w[GET HEAD].include?(env["REQUEST_METHOD"])
      end

      def answer_to(env)
        path = env["PATH_INFO"]
        return @page.call(env) if ["", "/"].include?(path)
        return @assets.call(env) if path.start_with?(Assets::PREFIX)

        route = @routes[path]
        route ? route.call(env.merge(URL => @url)) : Answer.text(404, "There is no #{path} here. The demo is at /.\n")
      rescue BadParameter => e
        Answer.text(400, "#{e.message}\n")
      end
    end
  end
end
