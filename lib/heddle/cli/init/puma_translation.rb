# frozen_string_literal: true

require "uri"

module Heddle
  module CLI
    class InitCommand
      # Heddle's configuration for Puma's, and what of it could not be carried over, line by line.
      class PumaTranslation
        # What became of a call.
        #
        # @!attribute call [PumaFile::Call]
        # @!attribute lines [Array<String>] of the new file
        # @!attribute remarks [Array<String>] what is not quite the same
        # @!attribute kind [Symbol] :carried, :needless or :left
        Outcome = Data.define(:call, :kind, :lines, :remarks)

        # Raised by what can't be carried over.
        class Left < StandardError
        end

        # Raised by what need not be.
        class Needless < StandardError
        end
        private_constant :Left, :Needless

        HOST = "0.0.0.0"
        private_constant :HOST

        # @param file [PumaFile]
        # @return [PumaTranslation]
        def self.of(file) = new(file)

        # @param file [PumaFile]
        def initialize(file)
          @file = file
          @host = HOST
          @said = []
          @remarks = []
          @outcomes = file.calls.map { |call| outcome(call) }
        end

        # @return [String] the new file
        def text
          carried = @outcomes.select { |one| one.kind == :carried }
          ["# frozen_string_literal: true\n\n# Made of #{@file.name} by `heddle init`. `heddle check` prints what " \
           "counts.\n", *carried.map { |one| paragraph(one) }, *additions, *left_in_file].join("\n")
        end

        # @return [Array<String>] lines for a terminal
        def report
          [*("#{@file.failure}. What follows there was only read, not run." if @file.failure),
           *section("Carried over:", :carried), *section("Needless, because Heddle does it anyway:", :needless),
           *section("Not carried over:", :left), ""]
        end

        private

        def outcome(call)
          @remarks = []
          lines = translate(call)
          lines = condition(call, lines)
          Outcome.new(call, :carried, lines, @remarks)
        rescue Needless => e
          Outcome.new(call, :needless, [], [e.message])
        rescue Left => e
          Outcome.new(call, :left, [], [e.message])
        end

        def translate(call)
          name = call.name
          raise Needless, PumaWords::NEEDLESS[name] if PumaWords::NEEDLESS.key?(name)
          raise Left, PumaWords::LEFT[name] if PumaWords::LEFT.key?(name)
          return hook(call) if PumaWords::HOOKS.key?(name)

          own = own_variable(call)
          raise Needless, "Heddle reads #{own} itself" if own
          raise Left, "it was not reached when the file was run, and its value is computed" unless call.values

          remark_on_value(call)
          return same(call, PumaWords::OPTIONS.fetch(name)) if PumaWords::OPTIONS.key?(name)
          return bind(call) if name == :bind
          return send(:"translate_#{name.to_s.delete("!")}", *call.values) if PumaWords::SPECIAL.include?(name)

          raise Left, "Heddle knows no such word"
        rescue ArgumentError
          raise Left, "its arguments are not understood"
        end

        def remark_on_value(call)
          @remarks << "Computed: this is what it came to when the file was read." if call.computed
        end

        # `environment ENV.fetch("RAILS_ENV", "development")` says nothing that Heddle would not do.
        def same(call, name)
          option = Server::Options::BY_NAME[name] or raise Left, "there is no option for it yet"
          variable = option.variables.find { |one| call.arguments.include?(one) }
          value = call.values.first
          raise Needless, "Heddle reads #{variable} itself" if variable && [nil, option.default].include?(value)

          option(name, option.unit == :path && value.is_a?(String) ? relative(value) : value)
        end

        def relative(path) = path.delete_prefix("#{Dir.pwd}/")

        # `pidfile ENV["PIDFILE"]` says nothing that the variable does not say.
        def own_variable(call)
          name = call.arguments[/\A\(?ENV(?:\[|\.fetch\(?\s*)["'](\w+)["']\s*[\])]*\z/, 1]
          name if name && Server::Options.variables.include?(name)
        end

        def hook(call)
          name = PumaWords::HOOKS.fetch(call.name)
          raise Left, "there is no hook at that step" unless Server::Hooks::NAMES.key?(name)
          raise Left, "it has no block" unless call.block
          raise Left, "its block uses #{call.needs.join(", ")} of Puma's file" if call.needs.any?

          ["#{name} #{call.block}"]
        end

        def option(name, value)
          option = Server::Options::BY_NAME[name] or raise Left, "there is no option for it yet"
          value = option.parse(value, name.to_s)
          ["#{name} #{Server::Units.literal(option.unit, value)}"]
        rescue Server::ConfigurationError => e
          raise Left, e.message
        end

        def translate_threads(min, max = min)
          @said << :threads
          @remarks << "One request a thread, as under Puma. Without these lines each process runs many requests at " \
                      "once, in fibers."
          unless min.to_i == max.to_i
            @remarks << "there is no least number of threads: all are there from the beginning"
          end
          ["mode :thread", *option(:threads, max.to_i)]
        end

        def translate_workers(count) = option(:workers, count.to_s == "auto" ? :auto : count.to_i)

        def translate_port(port, host = @host)
          return listen("#{bracketed(host)}:#{port}") if @said.include?(:port)

          @said << :port
          [*listen(bracketed(host)), *option(:port, port.to_s)]
        end

        def translate_set_default_host(host)
          @host = host
          raise Needless, "it is in what port became"
        end

        def bind(call)
          url = call.values.first.to_s
          port = url[%r{\Atcp://.*:(\d+)}, 1]
          return translate_bind(url) unless port && /\bPORT\b/.match?(call.arguments) && !@said.include?(:port)

          @said << :port
          @remarks.clear
          [*translate_bind(url.sub(":#{port}", "")), *option(:port, port)]
        end

        def translate_bind(url)
          uri = url.match(%r{\A(tcp|unix|ssl)://([^?]*)(?:\?(.*))?\z}) or raise Left, "its kind of address is unknown"
          parameters = URI.decode_www_form(uri[3].to_s).to_h
          case uri[1]
          when "tcp" then tcp(uri[2], parameters)
          when "unix" then unix(uri[2], parameters)
          else tls(uri[2], parameters)
          end
        end

        def tcp(address, parameters)
          drop(parameters, "backlog" => "say it with the option backlog", "low_latency" => "always so")
          listen(address)
        end

        def unix(path, parameters)
          raise Left, "sockets without a file are not listened on" if path.start_with?("@")

          umask = parameters.delete("umask")
          drop(parameters, "backlog" => "say it with the option backlog")
          mode = umask && format("?mode=%03o", 0o777 & ~umask.to_i(8))
          listen("unix:#{relative(path)}#{mode}")
        end

        def tls(address, parameters)
          kept = parameters.slice("cert", "key").map { |name, path| "#{name}=#{escaped(relative(path.to_s))}" }
          @remarks << "In development a certificate is made; elsewhere name one with cert and key." if kept.empty?
          kept.concat(clients(parameters))
          drop(parameters.except("cert", "key", "ca", "verify_mode"), {})
          listen(["tls://#{address}", *(kept.join("&") unless kept.empty?)].join("?"))
        end

        # What Puma asks its clients for.
        def clients(parameters)
          verify = { "peer" => "optional", "force_peer" => "required" }[parameters["verify_mode"].to_s]
          return [] unless verify
          raise Left, "verify_mode needs ca, the certificates of who signs the clients'" unless parameters["ca"]

          ["verify=#{verify}", "ca=#{escaped(relative(parameters["ca"].to_s))}"]
        end

        def escaped(path) = path.gsub(/[%&+#;,?]/) { |sign| format("%%%02X", sign.ord) }

        def translate_ssl_bind(host, port, options = {})
          raise Left, "certificates are read from files" if options.key?(:cert_pem) || options.key?(:key_pem)

          tls("#{bracketed(host)}:#{port}", options.to_h { |name, value| [name.to_s, value] })
        end

        def translate_bind_to_activated_sockets(*) = listen("systemd")

        def drop(parameters, why)
          parameters.each_key { |name| @remarks << "#{name} is left out#{": #{why[name]}" if why[name]}" }
        end

        def listen(address)
          @said << :bind
          ["bind #{address.inspect}"]
        end

        def bracketed(host) = host.include?(":") && !host.start_with?("[") ? "[#{host}]" : host

        def translate_quiet(*which)
          @said << :access_log
          ["access_log #{[false, nil].include?(which.fetch(0, true))}"]
        end

        def translate_log_requests(*which) = translate_quiet(!which.fetch(0, true))

        def translate_preload_app(*answer)
          raise Needless, "the application is loaded once, before the workers are forked" if answer.fetch(0, true)

          raise Left, "the application is always loaded before the workers are forked"
        end

        def translate_force_shutdown_after(value = :forever)
          raise Left, "there is always a limit: stop_timeout" if value == :forever

          option(:stop_timeout, value == :immediately ? 0 : value)
        end

        def translate_plugin(name)
          name = name.to_s
          raise Needless, PumaWords::PLUGINS.fetch(name) if PumaWords::PLUGINS.key?(name)
          raise Left, "Heddle has no plugins, and nothing that stands for #{name}" unless name == "solid_queue"

          @remarks << PumaWords::SOLID_QUEUE_REMARK
          PumaWords::SOLID_QUEUE
        end

        def translate_stdout_redirect(output = nil, errors = nil, *)
          raise Left, "say where errors go when you start the server: heddle serve 2>> log/error.log" unless output

          @remarks << "Errors go to the standard error: heddle serve 2>> #{errors}" if errors
          option(:log_file, relative(output))
        end

        def condition(call, lines)
          return lines if call.conditions == []
          return guarded(lines, call.conditions) if call.conditions && call.needs.empty?
          raise Left, "its condition did not hold when the file was read" unless call.reached

          @remarks << "its condition is left out: it held when the file was read"
          lines
        end

        def guarded(lines, conditions)
          test = conditions.one? ? conditions.first : conditions.map { |text| "(#{text})" }.join(" && ")
          return ["#{lines.first} if #{test}"] if lines.one? && !lines.first.include?("\n")

          ["if #{test}", *lines.flat_map { |line| line.lines(chomp: true) }.map { |line| "  #{line}" }, "end"]
        end

        def paragraph(outcome)
          head = Template.comment("#{@file.name}:#{outcome.call.line}: #{outcome.call.source}")
          remarks = outcome.remarks.map { |text| Template.comment(text) }
          "#{head}#{remarks.join}#{outcome.lines.join("\n")}\n"
        end

        # Where Puma's defaults differ.
        def additions
          found = []
          unless @said.include?(:bind)
            found << "# Puma listens on every address unless it is told otherwise.\nbind #{HOST.inspect}\n"
          end
          return found if @said.include?(:access_log)

          found << "# Puma does not log requests unless it is told to.\naccess_log false\n"
        end

        def left_in_file
          left = @outcomes.select { |one| one.kind == :left }
          return [] if left.empty?

          rows = left.map { |one| Template.comment("#{one.call.line}: #{one.call.source}  (#{one.remarks.first})") }
          ["# Not carried over:\n#{rows.join}"]
        end

        def section(title, kind)
          rows = @outcomes.select { |one| one.kind == kind }
          return [] if rows.empty?

          ["", title, *rows.map { |one| row(one) }]
        end

        def row(outcome)
          what = [*outcome.lines.map { |line| line.lines.first.strip }, *outcome.remarks].join("; ")
          "  #{outcome.call.line.to_s.rjust(4)}  #{outcome.call.source}\n        → #{what}"
        end
      end
    end
  end
end
