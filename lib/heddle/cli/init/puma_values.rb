# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Translates the values of Puma's settings to lines of Heddle's configuration file. Included in {PumaTranslation},
      # whose `@remarks`, `@mentioned` and `@expression` it changes.
      module PumaValues
        # Raised for a setting that can't be translated; the message says why.
        class SkippedError < OwnError; end

        # Raised for a setting that needs no translation; the message says why.
        class NeedlessError < OwnError; end

        private

        def translate_values(call)
          name = call.name
          own = own_variable(call) unless name == :threads
          raise NeedlessError, "Heddle reads #{own} itself" if own
          return workers_by_processors if name == :workers && call.processors
          raise SkippedError, unset(call) || "its value can't be computed" unless call.values

          keep_expression(call)
          return same_option(call, PumaSettings::OPTIONS.fetch(name)) if PumaSettings::OPTIONS.key?(name)
          return bind(call) if name == :bind
          return translate_plugin(call, *call.values) if name == :plugin
          return send(:"translate_#{name.to_s.delete("!")}", *call.values) if PumaSettings::TRANSLATED.key?(name)

          raise SkippedError, "heddle init does not know this setting of Puma"
        rescue ArgumentError, TypeError, NoMethodError, RangeError, EncodingError
          raise SkippedError, "heddle init can't translate the arguments of this setting"
        end

        # Keeps the expression that computes the value, so that the new file computes it, too. This is not possible for
        # addresses and `threads`, because Heddle's file has other values than Puma's for them.
        def keep_expression(call)
          in_address = call.name == :port && @mentioned.include?(:port) # see translate_port
          @expression = call.expression unless in_address || %i[bind ssl_bind threads].include?(call.name)
          return unless call.computed || call.expression != @expression

          @remarks << "Puma's file computes this value; this was the result when heddle init ran."
        end

        # @return [String, nil] why the call can't be translated, if a variable of its value is not set
        def unset(call)
          return if call.unset.empty?

          "its value needs the variable #{call.unset.first}: set it and run `heddle init` again, or write the line " \
            "yourself"
        end

        # Translates a setting to the option `name`. A call such as `environment ENV.fetch("RAILS_ENV", "development")`
        # needs no translation, because Heddle reads the variable itself.
        def same_option(call, name)
          option = Options::BY_NAME.fetch(name)
          variable = option.variables.find { |one| call.arguments.match?(/\b#{one}\b/) }
          value = call.values.first
          known = [nil, option.default, *ENV.values_at(*variable)]
          raise NeedlessError, "Heddle reads #{variable} itself" if variable && known.include?(value)

          option(name, option.unit == :path && value.is_a?(String) ? InitCommand.relative(value) : value)
        end

        # @return [String, nil] the variable, if the call is like `pidfile ENV["PIDFILE"]`, and Heddle reads this
        #   variable itself
        def own_variable(call)
          name = call.arguments[/\A\(?ENV(?:\[|\.fetch\(?\s*)["'](\w+)["']\s*[\])]*\z/, 1]
          name if name && Options.variables.include?(name)
        end

        def option(name, value)
          option = Options::BY_NAME.fetch(name)
          value = option.parse(value, name.to_s)
          literal = Options::Units.literal(option.unit, value)
          ["#{name} #{@expression || (name == :port ? literal.delete("_") : literal)}"]
        rescue Server::ConfigurationError => e
          raise SkippedError, e.message
        end

        # Code that ran in several threads also works in fibers. Code that ran in a single thread may not be
        # thread-safe.
        def translate_threads(min, max = min)
          if max.to_i != 1
            raise NeedlessError, "each process runs many requests at once in fibers; `mode :thread` and `threads " \
                                 "#{[min.to_i, max.to_i].max}` give each request a thread"
          end
          @remarks << "One request at a time in each process, as under Puma with one thread: the code may not be " \
                      "thread-safe. Raise the number only after a review of the code."
          option(:max_requests, 1)
        end

        # Replaces the number of processors of this machine by :auto, because another machine will serve.
        def workers_by_processors
          @remarks << "One worker for each processor of the server's machine; at least 2 if memory allows."
          option(:workers, :auto)
        end

        def translate_workers(count) = option(:workers, count.to_s == "auto" ? :auto : count.to_i)

        def translate_port(port, host = nil)
          return listen("#{PumaAddress.host(host || PumaSettings::HOST)}:#{port}") if @mentioned.include?(:port)

          @mentioned << :port
          [*(host ? listen(PumaAddress.host(host)) : listen_everywhere), *option(:port, port.to_s)]
        end

        def bind(call)
          url = call.values.first.to_s
          port = url[%r{\Atcp://.*:(\d+)}, 1]
          return translate_bind(url) unless port && /\bPORT\b/.match?(call.arguments) && !@mentioned.include?(:port)

          @mentioned << :port
          @remarks.clear
          [*translate_bind(url.sub(":#{port}", "")), *option(:port, port)]
        end

        def translate_bind(url) = listen(address.of_url(url))

        def translate_ssl_bind(host, port, options = {}) = listen(address.of_tls(host, port, options))

        def translate_bind_to_activated_sockets(*) = listen("systemd")

        def address = PumaAddress.new(@remarks)

        def listen(address)
          @mentioned << :bind
          ["bind #{address.inspect}"]
        end

        def listen_everywhere
          @mentioned << :bind
          @remarks << PumaSettings::RAILS if PumaSettings.rails?
          [PumaSettings.listen]
        end

        def translate_quiet(*which)
          @mentioned << :access_log
          ["access_log #{[false, nil].include?(which.fetch(0, true))}"]
        end

        def translate_log_requests(*which) = translate_quiet(!which.fetch(0, true))

        def translate_preload_app(*on)
          raise NeedlessError, "the application is loaded once, before the workers are forked" if on.fetch(0, true)

          raise SkippedError, "the application is always loaded before the workers are forked"
        end

        def translate_early_hints(*on)
          raise NeedlessError, "early hints are off by default" unless on.fetch(0, true)

          @remarks << "Clients behind a proxy get no early hints, because some proxies can't forward them; :always " \
                      "sends them to these clients, too."
          ["early_hints :on"]
        end

        def translate_force_shutdown_after(value = :forever)
          raise SkippedError, "Heddle always has a limit: set stop_timeout" if value == :forever

          option(:stop_timeout, value == :immediately ? 0 : value)
        end

        # Translates a plugin. Rails generates a condition on SOLID_QUEUE_IN_PUMA, which the option solid_queue reads
        # itself.
        def translate_plugin(call, name)
          name = PrintableText.line(name)
          raise NeedlessError, PumaSettings::PLUGINS.fetch(name) if PumaSettings::PLUGINS.key?(name)

          hint = ": run bin/rails tailwindcss:watch in another process, as bin/dev does" if name == "tailwindcss"
          raise SkippedError, "Heddle has no plugins, and no equivalent of #{name}#{hint}" if name != "solid_queue"

          variable = "SOLID_QUEUE_IN_PUMA"
          raise NeedlessError, "Heddle reads #{variable} itself" if call.conditions == [%(ENV["#{variable}"])]

          option(:solid_queue, true)
        end

        def translate_stdout_redirect(output = nil, errors = nil, *)
          raise SkippedError, "to redirect the standard error, run heddle serve 2>> log/error.log" unless output

          @remarks << "Only the server's log goes to this file. To redirect the application's output and errors, run " \
                      "heddle serve >> log/application.log#{" 2>> #{errors}" if errors}"
          option(:log_file, InitCommand.relative(output))
        end
      end
    end
  end
end
