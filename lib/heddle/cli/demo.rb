# frozen_string_literal: true

require "heddle/runtime"

module Heddle
  module CLI
    # The demo site: one page, and the endpoints that its panels drive.
    #
    # It is an ordinary Rack 3 application. It uses two parts of Heddle: the Fiber scheduler that serves it, and the
    # server whose counts it draws. `sleep` in it is Ruby's own.
    class Demo
      autoload :Answer, "heddle/cli/demo/answer"
      autoload :Assets, "heddle/cli/demo/assets"
      autoload :BadParameter, "heddle/cli/demo/parameters"
      autoload :Blockade, "heddle/cli/demo/blockade"
      autoload :Burst, "heddle/cli/demo/burst"
      autoload :Bystanders, "heddle/cli/demo/bystanders"
      autoload :Crowd, "heddle/cli/demo/crowd"
      autoload :Facts, "heddle/cli/demo/facts"
      autoload :FanOut, "heddle/cli/demo/fan_out"
      autoload :Page, "heddle/cli/demo/page"
      autoload :Panel, "heddle/cli/demo/panel"
      autoload :Parameters, "heddle/cli/demo/parameters"
      autoload :Panels, "heddle/cli/demo/panels"
      autoload :Pulse, "heddle/cli/demo/pulse"
      autoload :Song, "heddle/cli/demo/song"
      autoload :Talk, "heddle/cli/demo/talk"
      autoload :Trial, "heddle/cli/demo/trial"
      autoload :Weave, "heddle/cli/demo/weave"

      # @param server [Server, nil] the one that serves it: its addresses, its counts; nil: another one, which tells
      #   nothing of this
      # @param urls [#call] gives the addresses of the server where `server` is nil
      # @return [#call] a Rack 3 application
      def self.app(server: nil, urls: -> { [] })
        new(server:, urls:)
      end

      # @param panels [Array<Class>] subclasses of Panel, in the page's order
      # @param server [Server, nil]
      # @param urls [#call]
      def initialize(panels: Panels::ALL, server: nil, urls: -> { [] })
        facts = Facts.new
        @panels = panels.map { |panel| panel.new(facts:, server:, urls:) }.freeze
        @assets = Assets.new
        @page = Page.new(@panels, @assets)
        @routes = @panels.map(&:routes).reduce({}, :merge).freeze
        @mounts = @panels.map(&:mounts).reduce({}, :merge).freeze
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

        route = @routes[path] || mounted(env, path)
        route ? route.call(env) : Answer.text(404, "There is no #{path} here. The demo is at /.\n")
      rescue BadParameter => e
        Answer.text(400, "#{e.message}\n")
      end

      # The application below whose path this one is: it sees the rest of it. The env stays the same Hash, which may be
      # asked for an upgrade.
      def mounted(env, path)
        mount, application = @mounts.find { |prefix, _| path == prefix || path.start_with?("#{prefix}/") }
        return unless mount

        env["SCRIPT_NAME"] = "#{env["SCRIPT_NAME"]}#{mount}"
        env["PATH_INFO"] = path.delete_prefix(mount)
        application
      end
    end
  end
end
