# frozen_string_literal: true

module Heddle
  module CLI
    class Doctor
      # Findings about the application's gems. In mode fiber many requests share a thread, so gems that keep a request's
      # state per thread can mix up requests.
      class Libraries
        # A known problem of some versions of a gem, and what to do about it.
        Known = Data.define(:name, :versions, :level, :text, :advice) do
          def concerns?(spec) = name == spec.name && Gem::Requirement.new(*versions).satisfied_by?(spec.version)

          # In other modes than fiber, state per thread is harmless, so a problem becomes a note.
          def finding(spec, mode)
            harmless = level == :problem && mode != :fiber
            Finding.new(level: harmless ? :note : level, subject: "#{spec.name} #{spec.version}",
                        text: harmless ? "a problem only in mode fiber: #{text}" : text, advice:)
          end
        end

        KNOWN = [
          Known.new(name: "sequel", versions: ["< 5.32"], level: :problem,
                    text: "all requests of a thread share one connection and its transactions",
                    advice: "update Sequel to 5.32 or later: the server then loads its extension fiber_concurrency"),
          Known.new(name: "mongoid", versions: ["< 9.1"], level: :warning,
                    text: "keeps sessions and scopes per thread",
                    advice: "update Mongoid to 9.1 or later, and set Mongoid.isolation_level = :fiber"),
          Known.new(name: "request_store", versions: [">= 0"], level: :note,
                    text: "keeps its store per fiber: tasks that a request starts don't see the request's store",
                    advice: "use ActiveSupport::CurrentAttributes, or Fiber[] for values that tasks need"),
          Known.new(name: "rack-mini-profiler", versions: [">= 0"], level: :note,
                    text: "counts queries per fiber, so it misses the queries of tasks that a request " \
                          "starts", advice: nil),
          Known.new(name: "sqlite3", versions: [">= 0"], level: :note,
                    text: "holds Ruby's lock while a query runs: under any server, the other requests of the worker " \
                          "wait meanwhile",
                    advice: "keep queries short (indexes), and run as many workers as there are processors"),
          Known.new(name: "puma_worker_killer", versions: [">= 0"], level: :warning, text: "kills workers of Puma only",
                    advice: "remove it from the Gemfile"),
          Known.new(name: "unicorn-worker-killer", versions: [">= 0"], level: :warning,
                    text: "kills workers of Unicorn only", advice: "remove it from the Gemfile"),
          Known.new(name: "pitchfork", versions: [">= 0"], level: :note, text: "is another server", advice: nil),
          Known.new(name: "puma", versions: [">= 0"], level: :note,
                    text: "is another server; while it is in the bundle, rails server and rackup start it",
                    advice: "remove it from the Gemfile, or run rails server -u heddle; heddle init --from " \
                            "config/puma.rb translates its configuration (docs/from_puma.md)")
        ].freeze

        # Gems whose thread variables hold no state of a request, or that Heddle adapts.
        HARMLESS = %w[concurrent-ruby puma rspec-support thor i18n sentry-ruby activerecord activesupport railties
                      timeout itsi itsi-scheduler heddle].freeze
        PER_THREAD = /thread_variable_set\(|ThreadLocalVar\.new/
        private_constant :HARMLESS, :PER_THREAD

        # Groups of a Gemfile that are not installed in production.
        NOT_IN_PRODUCTION = %i[development test].freeze
        private_constant :NOT_IN_PRODUCTION

        class << self
          # @return [Array<Gem::Specification>] the loaded gems, without gems that are only in the groups development
          #   and test
          def in_production
            specs = Gem.loaded_specs.values
            return specs unless defined?(::Bundler::Runtime) && ENV["BUNDLE_GEMFILE"]

            groups = ::Bundler.definition.groups - NOT_IN_PRODUCTION
            names = ::Bundler.definition.specs_for(groups).map(&:name)
            specs.select { |spec| names.include?(spec.name) }
          rescue StandardError
            specs
          end
        end

        # @param specs [Array<Gem::Specification>] the gems to check
        # @param mode [Symbol] the option `mode` of the server
        def initialize(specs = Libraries.in_production, mode: :fiber)
          @specs = specs
          @mode = mode
        end

        # @return [Array<Finding>]
        def findings
          found = known + unknown + tested
          return found unless found.none? { |one| %i[problem warning].include?(one.level) }

          [Finding.new(level: :ok, subject: "gems", text: "no known problems with the #{@specs.size} gems of the " \
                                                          "application"), *found]
        end

        private

        def known
          @specs.flat_map do |spec|
            KNOWN.select { |one| one.concerns?(spec) }.map { |one| one.finding(spec, @mode) }
          end
        end

        # Notes about gems whose source keeps state per thread. They are only notes, because the state may be harmless.
        def unknown
          @specs.reject { |spec| HARMLESS.include?(spec.name) || KNOWN.any? { |one| one.name == spec.name } }
                .filter_map do |spec|
                  place = first_use(spec) or next
                  note(spec, "keeps data per thread (#{place})",
                       "if the data belongs to a request, add the variable to the option isolate")
                end
        end

        def first_use(spec)
          spec.full_require_paths.each do |folder|
            Dir.glob("**/*.rb", base: folder) do |file|
              File.foreach(File.join(folder, file), encoding: Encoding::BINARY).with_index(1) do |line, number|
                return "#{file}:#{number}" if PER_THREAD.match?(line) && !line.lstrip.start_with?("#")
              end
            end
          end
          nil
        rescue SystemCallError
          nil
        end

        def tested
          @specs.filter_map do |spec|
            setting = GemSettings::ALL[spec.name]
            next if !setting || KNOWN.any? { |one| one.concerns?(spec) }

            note(spec, "works with Heddle (docs/gems.md)", setting.gsub(/\[([^\]]+)\]\([^)]+\)/, '\1').delete("`"))
          end
        end

        def note(spec, text, advice)
          Finding.new(level: :note, subject: "#{spec.name} #{spec.version}", text:, advice:)
        end
      end
    end
  end
end
