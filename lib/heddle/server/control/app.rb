# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # The Rack application behind the control sockets. Over TCP, it shows only metrics and health, and nothing about
      # single requests.
      class App
        # Pages of all control sockets.
        PUBLIC = {
          "/metrics" => :metrics, "/health" => :ready, "/health/ready" => :ready, "/health/live" => :live
        }.freeze
        # Additional pages, which only the unix socket has.
        PRIVATE = { "/status" => :status, "/tasks" => :tasks, "/ended" => :ended }.freeze
        COMMANDS = %w[/stop /stop-now /reload /restart /protect-on /protect-off].freeze
        # The methods that handle a POST, which only the unix socket accepts.
        POSTS = { "/publish" => :publish, "/record" => :record, **COMMANDS.to_h { |path| [path, :order] } }.freeze
        private_constant :PUBLIC, :PRIVATE, :COMMANDS, :POSTS

        # @param source [SingleProcess, Cluster]
        # @param shutdown_result [Promise] whether every request was answered; it is resolved when the server has
        #   stopped
        # @param commands [Boolean] whether the client may see everything and give commands
        def initialize(source, shutdown_result, commands:)
          @source = source
          @shutdown_result = shutdown_result
          @pages = commands ? { **PUBLIC, **PRIVATE } : PUBLIC
          @commands = commands
        end

        # @param env [Hash{String => Object}]
        # @return [Array] the response
        def call(env)
          path = env["PATH_INFO"]
          page = @pages[path]
          return look(env, page) if page
          return post(env, POSTS[path]) if POSTS.key?(path)

          text(404, "unknown path (known: #{@pages.keys.join(", ")})")
        end

        private

        def look(env, page)
          return send(page) if %w[GET HEAD].include?(env["REQUEST_METHOD"])

          text(405, "#{env["PATH_INFO"]} needs GET or HEAD", "allow" => "GET, HEAD")
        end

        def post(env, action)
          return text(403, "#{env["PATH_INFO"]} is accepted only over the Unix control socket") unless @commands
          return text(405, "#{env["PATH_INFO"]} needs POST", "allow" => "POST") unless env["REQUEST_METHOD"] == "POST"

          send(action, env)
        rescue RejectedError => e
          text(409, e.message)
        end

        def order(env)
          wait = env["QUERY_STRING"] == "wait"
          text(wait ? 200 : 202, @source.command(env["PATH_INFO"].delete_prefix("/"), wait:))
        end

        def record(env)
          seconds = Float(env["QUERY_STRING"][/\Aseconds=(.+)/, 1], exception: false)
          return text(400, "a recording takes #{RECORDED.begin} to #{RECORDED.end} s") unless RECORDED === seconds

          text(200, @source.record(seconds))
        end

        # The request's body is the message. The response is the message's position in the pub/sub history.
        def publish(env)
          require "uri" # loaded only here, because most servers receive no messages this way
          topic = URI.decode_www_form(env["QUERY_STRING"]).assoc("topic")&.last
          return text(400, "publish needs a topic: /publish?topic=name") unless topic

          text(200, PubSub::Route.publish_here(topic, env["rack.input"].read))
        rescue ArgumentError => e
          text(413, e.message)
        rescue PubSub::UnreachableError => e
          text(503, e.message)
        end

        def metrics = [200, { "content-type" => Metrics::TYPE }, [Metrics.new(@source.report).to_s]]

        def status = json(@source.report)

        # Waits until the server has stopped.
        def ended = json({ answered: @shutdown_result.value })

        def json(value) = [200, { "content-type" => "application/json" }, [JSON.generate(value), "\n"]]

        def tasks = text(200, @source.tasks.chomp)

        def ready = health(@source.dead || @source.unready)

        def live = health(@source.dead)

        def health(problem) = problem ? text(503, problem) : text(200, "ok")

        def text(status, words, headers = {})
          [status, { "content-type" => "text/plain; charset=utf-8", "cache-control" => "no-store", **headers },
           ["#{words}\n"]]
        end
      end
    end
  end
end
