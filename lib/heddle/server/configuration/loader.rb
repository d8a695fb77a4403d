# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # Finds the value of each option. The first source that has one counts: the flags, the environment variables, the
      # configuration file, the command's defaults, the platform's default, the option's default.
      class Loader
        NO_FILE = "-"
        # Kubernetes sets this variable in each container of a pod. When Kubernetes stops a pod, it still sends requests
        # to that pod for some seconds.
        POD = "KUBERNETES_SERVICE_HOST"
        POD_DRAIN_DELAY = 5
        ONE_THREAD = "RAILS_MAX_THREADS is 1, but each process runs many requests at once, in fibers. Set " \
                     "max_requests 1 if the code is not thread-safe; max_requests 0 removes this warning"
        private_constant :NO_FILE, :POD, :POD_DRAIN_DELAY, :ONE_THREAD

        # The parameters are those of {Configuration.load}.
        def initialize(flags:, environment:, defaults:, file:, folder:)
          @flags = flags
          @environment = environment
          @defaults = defaults
          @wanted = file
          @folder = ::File.expand_path(folder)
        end

        # @return [Configuration]
        # @raise [ConfigurationError] the message lists every mistake
        def load
          @file = nil
          @values = {}
          @sources = {}
          @problems = []
          resolve(Options::BY_NAME.fetch(:config))
          resolve(Options::BY_NAME.fetch(:environment))
          @file = read_file
          Options::ALL.partition { |option| !option.dependent? }.each { |options| options.each { |one| resolve(one) } }
          configuration = build if @problems.empty?
          raise ConfigurationError, PrintableText.utf8(@problems.join("\n")) if @problems.any?

          configuration
        end

        private

        def read_file
          path = path_of_file or return
          unless ::File.file?(::File.expand_path(path, @folder))
            source = @sources[:config]
            @problems << "the configuration file #{path}#{" (#{source})" if source} does not exist"
            return
          end
          file = File.new(path, folder: @folder, environment: @values[:environment]).read
          @problems.concat(file.problems)
          file
        end

        def path_of_file
          named = @values[:config]
          return if named == NO_FILE || @wanted == NO_FILE

          named || (@wanted == :find ? File.find(@folder) : @wanted)
        end

        def resolve(option)
          value, source = from_flag(option) || from_variable(option) || from_file(option) ||
                          from_command(option) || from_platform(option)
          return unless source

          value = ::File.expand_path(value, @folder) if option.unit == :path && value && value != NO_FILE
          @values[option.name] = value
          @sources[option.name] = source
        end

        def from_flag(option)
          [parse(option, @flags[option.name], option.flag), Source.new(:flag, option.flag)] if @flags.key?(option.name)
        end

        def from_variable(option)
          also = option.conditions.select { |_, wanted| wanted.all? { |name, value| effective(name) == value } }.keys
          name = [*option.variables, *also].find { |variable| !@environment[variable].to_s.empty? }
          [parse(option, @environment[name], name), Source.new(:variable, name)] if name
        end

        def from_file(option)
          setting = @file&.settings&.[](option.name)
          [setting.value, Source.new(:file, setting.place, setting.places)] if setting
        end

        def from_command(option)
          [@defaults[option.name], Source.new(:command, "default of the command")] if @defaults.key?(option.name)
        end

        def from_platform(option)
          return unless option.name == :drain_delay && !@environment[POD].to_s.empty?

          [POD_DRAIN_DELAY, Source.new(:platform, POD)]
        end

        # Records a wrong value as a mistake and returns the default instead, so that all other options can be checked,
        # too.
        def parse(option, value, source)
          option.parse(value, source)
        rescue ConfigurationError => e
          @problems |= [e.message]
          default(option)
        end

        def effective(name) = @values.fetch(name) { default(Options::BY_NAME.fetch(name)) }

        def default(option)
          return option.default unless option.default.is_a?(Proc)

          option.default.call(Options::ALL.reject(&:dependent?).to_h { |one| [one.name, effective(one.name)] })
        end

        def build
          origin = Origin.new(sources: @sources, hooks: @file ? @file.hooks : Hooks.new, file: @file&.name,
                              warnings: [*unknown_variables, *puma_warnings], again: method(:load))
          Configuration.new(origin:, **@values)
        rescue ConfigurationError => e
          @problems << e.message
          nil
        end

        # Warns about settings that affect Puma but not Heddle.
        def puma_warnings
          names = @environment.keys.select(&:valid_encoding?).grep(/_IN_PUMA\z/).sort - Options.variables
          warnings = names.map { |name| "the environment variable #{name} has no effect: Heddle has no such plugin" }
          if @wanted == :find && @file.nil? && !@values.key?(:config) && (puma = pumas_file)
            warnings << "#{puma} is ignored; heddle init --from #{puma} converts it to config/heddle.rb"
          end
          warnings << ONE_THREAD if one_thread?
          warnings
        end

        # With RAILS_MAX_THREADS=1, Puma runs one request at a time, so the code may not be thread-safe.
        def one_thread?
          @environment["RAILS_MAX_THREADS"] == "1" && effective(:mode) == :fiber && !@values.key?(:max_requests)
        end

        def pumas_file
          paths = ["config/puma/#{effective(:environment)}.rb", "config/puma.rb"]
          paths.find { |path| ::File.file?(::File.join(@folder, path)) }
        end

        def unknown_variables
          known = Options.variables
          others = Options::OTHER_VARIABLES
          @environment.keys.select(&:valid_encoding?).grep(/\AHEDDLE_/).sort.filter_map do |name|
            next if known.include?(name) || others.include?(name)
            next if others.any? { |other| other.end_with?("_") && name.start_with?(other) }

            "the environment variable #{name} has no effect#{NameSuggestion.hint(name, known.grep(/\AHEDDLE_/))}"
          end
        end
      end
    end
  end
end
