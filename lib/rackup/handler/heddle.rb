# frozen_string_literal: true

require "rackup/handler"
require "heddle/runtime"
require "heddle/server"

module Rackup
  # The module in which rackup and Rails look for servers.
  module Handler
    # Runs Heddle for `rackup -s heddle` and `rails server -u heddle`. `heddle serve` does not use this class.
    #
    # Every option of `heddle help serve --all` can be set by its environment variable and, except `config`, by its name
    # (`rackup -s heddle -O head_timeout=5`). Requests are logged only with `-O access_log` or HEDDLE_ACCESS_LOG,
    # because rackup and Rails log them, too.
    class Heddle
      # The port if neither rackup nor Rails passes one.
      DEFAULT_PORT = 9_292
      private_constant :DEFAULT_PORT

      class << self
        # Serves until INT, TERM, QUIT or HUP arrives, or {shutdown} is called. Then waits until the running requests
        # are answered, at most as long as the option `stop_timeout` allows.
        #
        # @param app [#call]
        # @param options [Hash{Symbol => Object}] `:Host`, `:Port`, and the options that {valid_options} lists; other
        #   options of rackup and Rails are ignored
        # @yield before the server accepts connections
        # @yieldparam server [Heddle::Server]
        # @return [Boolean] whether every request was answered
        def run(app, **options)
          configuration = configuration(options)
          configuration.warnings.each { |text| warn "heddle: #{text}" }
          # If stdout is a pipe (foreman, a container), Ruby would buffer up to 64 KiB of the log.
          $stdout.sync = true
          log = ::Heddle::Server::Log.of(configuration)
          @server = ::Heddle::Server.new(configuration, log:)
          @server.open
          yield @server if block_given?
          warn_of_workers(configuration)
          ::Heddle::Server::Control.beside(configuration, @server, log) do
            @server.run_alone(app) { announce(@server) unless options[:quiet] }
          end
        rescue ::Heddle::Server::ConfigurationError, ::Heddle::Server::BootError => e
          abort "heddle: #{e.message}"
        ensure
          @server&.close
          @server = nil
        end

        # Stops gracefully.
        # @return [void]
        def shutdown = @server&.stop

        # @return [Hash{String => String}] the options that `rackup -s heddle -h` prints, with their texts
        def valid_options
          own = { "Host=HOST" => "listen on this host name, address or unix:path (default: localhost)",
                  "Port=PORT" => "port to listen on (default: #{DEFAULT_PORT}); 0: the system chooses one" }
          ::Heddle::Options::ALL.each_with_object(own) do |option, all|
            next if %i[port config].include?(option.name)

            name = option.unit == :switch ? option.name.to_s : "#{option.name}=#{option.argument}"
            default = option.name == :access_log ? "off" : option.default_text
            all[name] = default.empty? ? option.text : "#{option.text} (default: #{default})"
          end
        end

        # @param options [Hash{Symbol => Object}] see {run}
        # @return [Heddle::Server::Configuration]
        # @raise [Heddle::Server::ConfigurationError]
        def configuration(options)
          # rackup's own option `config` is the path of config.ru, so the option `config` is left out here.
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

        # Returns whether the user has set a host or a port. If not, the addresses in the configuration file are used.
        # Rails lists the options that the user has set. rackup does not, so each value that is not a default counts as
        # set by the user. The variable PORT does not count, because Heddle reads it itself.
        def said?(options)
          if (names = options[:user_supplied_options])
            return names.include?(:Host) || (names.include?(:Port) && options[:Port].to_s != ENV["PORT"])
          end

          (options[:Port] || DEFAULT_PORT).to_i != DEFAULT_PORT ||
            ![nil, "", "localhost", "0.0.0.0"].include?(options[:Host])
        end

        # As in Puma, the host may also be a path or a URL: `rails server -b "ssl://localhost?cert=a.pem&key=b.pem"`.
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

        # Warns that `workers` has no effect here: rackup or Rails has loaded the application in this process, and this
        # process serves by itself.
        def warn_of_workers(configuration)
          return if configuration.worker_count == 1 || configuration.source(:workers).kind == :default

          warn "heddle: serving with one process; the option workers (#{configuration.source(:workers)}) has an " \
               "effect only with `heddle serve`"
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
