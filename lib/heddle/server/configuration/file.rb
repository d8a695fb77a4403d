# frozen_string_literal: true

module Heddle
  class Server
    class Configuration
      # A configuration file. It is Ruby code, in which every option is a method:
      #
      #     workers 4
      #     bind "0.0.0.0:3000", "unix:tmp/heddle.sock"
      #     stop_timeout environment == "production" ? 20 : 1
      #
      # All mistakes are reported together, each with its line.
      class File
        # The default paths, in the order in which they are tried.
        NAMES = %w[config/heddle.rb heddle.rb].freeze

        # An option's value in the file, and its place (file and line). For a list, `places` has the place of each
        # element.
        Setting = Data.define(:value, :place, :places)

        # @return [Hash{Symbol => Setting}] the settings by option
        attr_reader :settings
        # @return [Hooks] the blocks that the file has set
        attr_reader :hooks
        # @return [Array<String>] the mistakes, each with file and line
        attr_reader :problems
        # @return [String] the path relative to `folder`, for messages
        attr_reader :name

        # @param folder [String]
        # @return [String, nil] the path of the folder's configuration file
        def self.find(folder) = NAMES.map { |name| ::File.join(folder, name) }.find { |path| ::File.file?(path) }

        # @param path [String]
        # @param folder [String] the application's folder; messages show the path relative to it
        # @param environment [String, nil] what `environment` returns in the file; nil: it returns the value that the
        #   file has set, or else the default
        def initialize(path, folder:, environment:)
          @path = ::File.expand_path(path, folder)
          @name = @path.delete_prefix("#{folder}/")
          @environment = environment
          @settings = {}
          @hooks = Hooks.new
          @problems = []
          @read = false
        end

        # Evaluates the file.
        # @return [self]
        def read
          evaluate(::File.read(@path, encoding: Encoding::UTF_8)) # in any locale, because Ruby source is UTF-8
          self
        rescue SystemCallError => e
          problem("#{@name} can't be read: #{ErrorText.reason(e)}")
          self
        ensure
          @read = true
        end

        # @api private
        def option(option, values, block)
          if option.name == :environment && values.empty?
            return @environment || @settings[:environment]&.value || option.default
          end
          return reject_late(option.name) if @read

          place = here
          if block || values.empty? || (values.size > 1 && option.unit != :list)
            return problem("#{place}: #{option.name} takes one value, as in: #{option.example}")
          end

          set(option, option.unit == :list ? values : values.first, place)
        end

        # @api private
        def hook(name, values, block)
          return reject_late(name) if @read

          place = here
          unless block && values.empty?
            return problem("#{place}: #{name} takes a block and nothing else, as in: #{name} { … }")
          end

          @hooks.add(name, &block)
          nil
        end

        # @api private
        def unknown(name)
          return reject_late(name) if @read

          word = name.to_s.delete_suffix("=")
          return problem("#{here}: config can't be set here. Use --config or HEDDLE_CONFIG") if word == "config"

          problem("#{here}: there is no option #{word}#{NameSuggestion.hint(word, words)}")
        end

        private

        def words = [*Options::IN_FILE.map(&:name), *Hooks::NAMES.keys].map(&:to_s)

        def evaluate(source)
          scope = Context.new(self).__binding__
          eval(source, scope, @path, 1) # rubocop:disable Security/Eval
          check_variables(scope, source)
        rescue SignalException, NoMemoryError
          raise
        rescue SystemExit => e
          # `abort` has already printed its message.
          problem("#{place_of(e.backtrace_locations)}: the file ended the process, with status #{e.status}")
        rescue SyntaxError => e
          problem(Syntax.problem(@name, source, e))
        rescue Exception => e
          message = PrintableText.line(ErrorText.message(e).lines.first.to_s.chomp).gsub("#{Context}::", "")
          problem("#{place_of(e.backtrace_locations)}: #{e.class}: #{message}")
        end

        # Reports lines such as `workers = 4`, which set a local variable and not the option.
        def check_variables(scope, source)
          (scope.local_variables & Options::IN_FILE.map(&:name)).each do |name|
            line = source.lines.index { |text| /^\s*#{name}\s*=[^=~]/.match?(text) }
            problem("#{@name}#{":#{line + 1}" if line}: #{name} = … sets a variable, not an option. Write it without " \
                    "the =, as in: #{Options::BY_NAME.fetch(name).example}")
          end
        end

        def set(option, value, place)
          return if value.nil? && option.default.nil? # such as `pidfile ENV["PIDFILE"]` when the variable is not set

          value = option.parse(value, "#{place}: #{option.name}")
          before = @settings[option.name] if option.unit == :list && value.any?
          places = [*before&.places, *([place] * value.size)] if option.unit == :list
          @settings[option.name] = Setting.new(before ? before.value + value : value, place, places)
          nil
        rescue ConfigurationError => e
          problem(e.message)
        end

        def problem(text)
          @problems << text
          nil
        end

        # Rejects an option in a block, such as a hook, that runs after the file was read.
        def reject_late(name)
          raise ConfigurationError, "#{name} is set in a block that runs later (#{here}): set it outside of blocks"
        end

        def here = place_of(caller_locations(2))

        def place_of(locations)
          line = locations&.find { |location| location.path == @path }&.lineno
          line ? "#{@name}:#{line}" : @name
        end
      end
    end
  end
end
