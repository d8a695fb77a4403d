# frozen_string_literal: true

require "rackup/handler"
require "heddle/runtime"
require "heddle/server"

module Rackup
  # Where rackup and Rails look for servers.
  module Handler
    # `rackup -s heddle` and `rails server -u heddle`. `heddle serve` does the same without either.
    #
    # Every option of `heddle help serve` can be given by its name, `rackup -s heddle -O head_timeout=5`, and by its
    # environment variable. Requests are not logged unless `-O access_log` asks for it: rackup and Rails log them
    # themselves.
    class Heddle
      # Used when neither rackup nor Rails names a port.
      DEFAULT_PORT = 9_292
      private_constant :DEFAULT_PORT

      class << self
        # Serves until INT, TERM or {shutdown}, and until the requests that run then are answered.
        #
        # @param app [#call]
        # @param options [Hash{Symbol => Object}] `:Host`, `:Port`, and what {valid_options} lists; other options of
        #   rackup and Rails are ignored
        # @yieldparam server [Heddle::Server] before it accepts connections
        # @return [Boolean] whether every request was answered
        def run(app, **options)
          configuration = configuration(options)
          configuration.warnings.each { |text| warn "heddle: #{text}" }
          # Through a pipe (foreman, a container) Ruby would keep the log's lines until there are 64 KiB of them.
          $stdout.sync = true
          log = ::Heddle::Server::Log.of(configuration)
          @server = ::Heddle::Server.new(configuration, log:)
          @server.open
          yield @server if block_given?
          warn_of_workers(configuration)
          ::Heddle::Server::Control.beside(configuration, @server, log) do
            configuration.hooks.around_worker do
              ::Heddle::Server::SolidQueue.beside(configuration, log) do |begin_jobs|
                @server.run(app, signals: true) do
                  begin_jobs.call
                  announce(@server) unless options[:quiet]
                  configuration.hooks.run_safely(:on_booted, log)
                end
              end
            end
          end
        rescue ::Heddle::Server::ConfigurationError, ::Heddle::Server::BootError => e
          abort "heddle: #{e.message}"
        ensure
          @server = nil
        end

        # Stops gracefully.
        # @return [void]
        def shutdown = @server&.stop

        # @return [Hash{String => String}] what `rackup -s heddle -h` prints
        def valid_options
          own = { "Host=HOST" => "where to listen: a name, an address or unix:path (default: localhost)",
                  "Port=PORT" => "port to listen on (default: #{DEFAULT_PORT}); 0 lets the system choose one" }
          ::Heddle::Options::ALL.each_with_object(own) do |option, all|
            next if %i[port config].include?(option.name)

            name = option.unit == :switch ? option.name.to_s : "#{option.name}=#{option.argument}"
            default = option.name == :access_log ? "off" : option.default_text
            all[name] = default.empty? ? option.text : "#{option.text} (default: #{default})"
          end
        end

        # @param options [Hash{Symbol => Object}] as {run} takes them
        # @return [Heddle::Server::Configuration]
        # @raise [Heddle::Server::ConfigurationError]
        def configuration(options)
          # rackup's option config is its config.ru.
          flags = options.slice(*::Heddle::Options::IN_FILE.map(&:name)).compact
          # `rails server --early-hints` is a switch.
          flags[:early_hints] = flags[:early_hints] ? :on : :off if [true, false].include?(flags[:early_hints])
          flags[:access_log] = false unless flags.key?(:access_log) || ENV.key?("HEDDLE_ACCESS_LOG")
          said = flags.key?(:bind) || said?(options)
          flags[:bind] = address(options[:Host], options[:Port]) if said && !flags.key?(:bind)
          defaults = said ? {} : { bind: [address(options[:Host], nil)], port: options[:Port]&.to_i || DEFAULT_PORT }
          ::Heddle::Server::Configuration.load(flags:, defaults:)
        end

        private

        # Has the user said where to listen? If not, the configuration file decides. Rails reports the user's options.
        # With rackup, a value that is not its default is the user's. The variable PORT does not count, because Heddle
        # reads it itself.
        def said?(options)
          if (names = options[:user_supplied_options])
            return names.include?(:Host) || (names.include?(:Port) && options[:Port].to_s != ENV["PORT"])
          end

          (options[:Port] || DEFAULT_PORT).to_i != DEFAULT_PORT ||
            ![nil, "", "localhost", "0.0.0.0"].include?(options[:Host])
        end

        # Takes paths and URLs, too, as Puma does: `rails server -b "ssl://localhost?cert=a.pem&key=b.pem"`.
        def address(host, port)
          host = host.to_s
          return host if host.start_with?("unix:")
          return "unix:#{host}" if host.start_with?("/", ".")
          return with_port(host, port) if host.include?("://")

          host = "localhost" if host.empty?
          host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
          port ? "#{host}:#{port}" : host
        end

        def with_port(url, port)
          port && !url.match?(%r{\A[^?]*:\d+/?(?:\?|\z)}) ? url.sub(/(?=\?|\z)/, ":#{port}") : url
        end

        # rackup and Rails have loaded the application here: there is nothing to fork a worker from.
        def warn_of_workers(configuration)
          return if configuration.worker_count == 1 || configuration.source(:workers).kind == :default

          warn "heddle: one process serves: workers (#{configuration.source(:workers)}) applies only to `heddle serve`"
        end

        def announce(server)
          puts "Heddle #{::Heddle::VERSION} (Ruby #{RUBY_VERSION}, #{Fiber.scheduler.selector}) serves on " \
               "#{server.urls.join(", ")}", "Ctrl-C stops it."
          $stdout.flush
        end
      end
    end

    register :heddle, Heddle
  end
end
