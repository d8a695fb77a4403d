# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Changes an application's Gemfile, its tests, and the files that start its server (`heddle init --apply`), and
      # restores all of them (`--undo`).
      class Installation
        # Patterns for the names of files that start a server, each with a pattern for the lines that may start it.
        STARTS = {
          "{Dockerfile,Dockerfile.*}" => /\A\s*(?:CMD|ENTRYPOINT)\s/i,
          "{Procfile,Procfile.*}" => /\A[\w-]+:/,
          "{config/deploy*,compose,compose.*,docker-compose*}.{yml,yaml}" => /\A\s*(?:cmd|command):\s/,
          "{render,heroku}.{yml,yaml}" => /\A\s*[\w-]+:\s/,
          "fly*.toml" => /\A\s*[\w-]+\s*=\s/,
          "bin/docker-entrypoint" => /\A\s*(?:exec\s|bundle\s)/
        }.freeze
        TESTS = "{test,spec,features}/**/*.rb"
        CAPYBARA = /\A(\s*Capybara\.server\s*=\s*):puma\b.*/n
        # Matches the conditions of Rails' bin/docker-entrypoint: `if [ "${1}" == "./bin/rails" ] && [ "${2}" ==
        # "server" ]` and `if [ "${*}" == "./bin/rails server" ]`.
        ENTRYPOINT = /\A(\s*)if .*\brails(?:".*"| )s(?:erver)?".*; then\z/n
        # The condition that replaces a match of ENTRYPOINT. `heddle doctor` recognizes this line.
        PREPARES = 'if [[ " $* " == *" heddle serve "* || " $* " == *"/rails server "* ]]; then'
        PUMA = "config/puma.rb"
        START_REASON = "`heddle serve` loads the application only once; `rails server` also loads it in the master."
        KEPT = "Heddle serves only in production. Puma stays in development and tests, on every machine of the team"
        private_constant :STARTS, :TESTS, :CAPYBARA, :ENTRYPOINT, :START_REASON, :KEPT

        # @param keep_puma [Boolean, nil] whether Puma still serves in development and tests; nil: false on Linux, true
        #   elsewhere
        # @param platform [String] RbConfig's name of the operating system
        def initialize(keep_puma: nil, platform: RbConfig::CONFIG["host_os"])
          @keep_puma = keep_puma.nil? ? !platform.include?("linux") : keep_puma
          reason = keep_puma ? "of --keep-puma" : "Heddle was never tested on #{platform} (--no-keep-puma removes Puma)"
          @why_kept = "#{KEPT}, because #{reason}."
          @changed = {}
          @report = []
        end

        # Computes the changes without writing files.
        # @param bound [Boolean] whether Heddle's configuration file sets an address to listen on. If not, the changed
        #   commands set one: Puma listens on every address by default, Heddle on localhost.
        # @return [self]
        # @raise [UsageError]
        def prepare(bound:)
          @bind = bound ? nil : "0.0.0.0"
          edit_gemfile
          STARTS.each { |pattern, beginning| files(pattern).each { |path| edit_starts(path, beginning) } }
          files(TESTS).each { |path| edit_test(path) } unless @keep_puma
          self
        end

        # @return [Boolean] whether {#apply} writes a file
        def changed? = @changed.any?

        # @return [Array<String>] lines for a terminal
        def apply
          write
          @report << "No file needed a change." if @report.empty?
          @report
        end

        # @param configuration [String] the path of Heddle's configuration file
        # @return [Array<String>] lines for a terminal
        def undo(configuration)
          files("{Gemfile,gems.rb}", *STARTS.keys, TESTS).each do |path|
            lines = MarkedLines.new(File.binread(path))
            restored = lines.restore
            next if restored == lines.text

            @changed[path] = restored
            @report << "#{path} restored."
          end
          write
          restore_configuration(configuration) if File.file?(configuration)
          @report << "No file was changed by `heddle init --apply`, so none was restored." if @report.empty?
          @report
        end

        private

        def files(*patterns) = Dir[*patterns].select { |path| File.file?(path) }

        def write
          @changed.each do |path, text|
            File.binwrite(path, text)
          rescue SystemCallError => e
            raise UsageError, "can't write #{path}: #{ErrorText.reason(e)}. `heddle init --undo` restores files that " \
                              "were already changed."
          end
        end

        def restore_configuration(path)
          file = MadeFile.new(File.binread(path))
          return unless file.made?

          unless file.unchanged?
            return @report << "#{path} was kept, because it has changes since `heddle init --apply`. Remove it if " \
                              "you don't need it."
          end

          file.former ? File.binwrite(path, file.former) : File.delete(path)
          @report << "#{path} #{file.former ? "restored" : "removed"}."
        end

        def edit(path)
          lines = MarkedLines.new(File.binread(path))
          before = lines.text
          yield lines
          @changed[path] = lines.text unless lines.text == before
        end

        def replace(lines, path, numbers, text, why)
          old = lines.to_a[numbers]
          lines.replace(numbers, text)
          @report.push("#{path}:#{numbers.begin + 1}", *old.map { |line| "  - #{PrintableText.line(line)}" },
                       "  + #{PrintableText.line(text)}", "  #{why}", "")
        end

        def edit_gemfile
          path = files("{Gemfile,gems.rb}").first or
            return @report << "This folder has no Gemfile: add the gem heddle where the application's gems are " \
                              "listed.\n"
          edit(path) do |lines|
            calls = gems(path, lines.text)
            has_heddle = calls.any? { |call| name_of(call) == "heddle" }
            calls.each { |call| has_heddle = replace_puma(lines, path, call, has_heddle) if name_of(call) == "puma" }
            if has_heddle
              limit_to_production(lines, path, calls) if @keep_puma
            else
              text = "gem \"heddle\"#{", group: :production" if @keep_puma}"
              lines.append(text)
              @report.push(path, "  + #{text}", *("  #{@why_kept}" if @keep_puma), "")
            end
          end
        end

        # Moves the gem heddle to the group production. `bundle add heddle` adds it without a group; then every command
        # of the application loads it, and fails on machines where it can't be compiled.
        def limit_to_production(lines, path, calls)
          call = calls.find { |one| name_of(one) == "heddle" && !grouped?(one) } or return
          replace_call(lines, path, call, with_group(call, ":production"), @why_kept)
        end

        # @return [Boolean] whether the Gemfile now contains Heddle
        def replace_puma(lines, path, call, has_heddle)
          if @keep_puma
            group = with_group(call, "%i[development test]")
            replace_call(lines, path, call, group, @why_kept) unless grouped?(call)
          elsif has_heddle
            replace_call(lines, path, call, '# The gem "heddle" replaces puma.', "The Gemfile already contains Heddle.")
          else
            replace_call(lines, path, call, heddle_call(call), "`rails server` and Capybara then start Heddle.")
          end
          has_heddle || !@keep_puma
        end

        # Replaces a call of `gem`. Unless Puma is kept, also replaces a comment about Puma in the line above the call.
        def replace_call(lines, path, call, text, why)
          location = call.location
          numbers = (location.start_line - 1)..(location.end_line - 1)
          all = lines.to_a
          around = [all[numbers.begin].byteslice(0, location.start_column),
                    all[numbers.end].byteslice(location.end_column..)]
          above = numbers.begin - 1
          numbers = above..numbers.end if above >= 0 && !@keep_puma && all[above].match?(/\A\s*#.*\bPuma\b/)
          replace(lines, path, numbers, around.join(text), why)
        end

        # @return [Array<Prism::CallNode>] the calls of `gem`
        def gems(path, text)
          calls = SyntaxTree.nodes(SyntaxTree.parse(path, text).value).grep(Prism::CallNode).reject(&:receiver)
          groups = calls.select { |call| call.name == :group }
          @groups = groups.map { |call| call.location.start_line..call.location.end_line }
          calls.select { |call| call.name == :gem && name_of(call) }
        end

        def name_of(call)
          argument = call.arguments&.arguments&.first
          argument.unescaped if argument.is_a?(Prism::StringNode)
        end

        def options(call)
          hash = call.arguments.arguments.grep(Prism::KeywordHashNode).first
          hash ? hash.elements.grep(Prism::AssocNode) : []
        end

        def grouped?(call)
          @groups.any? { |lines| lines.cover?(call.location.start_line) } ||
            options(call).any? { |pair| pair.key.slice.match?(/\Agroups?:/) }
        end

        def with_group(call, groups)
          given = call.arguments.arguments.flat_map { |one| one.is_a?(Prism::KeywordHashNode) ? one.elements : [one] }
          write_call(call, [*given.map(&:slice), "group: #{groups}"])
        end

        # @return [String] the call in one line, as {MarkedLines#replace} requires
        def write_call(call, arguments)
          text = arguments.join(", ").gsub(/\s*\n\s*/, " ")
          call.closing_loc ? "gem(#{text})" : "gem #{text}"
        end

        # @return [String] the `gem` call for Heddle, with the groups and platforms of Puma's call
        def heddle_call(call)
          kept = options(call).select { |pair| pair.key.slice.match?(/\A(?:groups?|platforms?|install_if):/) }
          write_call(call, ['"heddle"', *kept.map(&:slice)])
        end

        def edit_starts(path, beginning)
          development = path.end_with?(".dev")
          return if development && @keep_puma

          edit(path) do |lines|
            lines.to_a.each_with_index do |line, index|
              next prepare_database(lines, path, index, line) if ENTRYPOINT.match?(line)
              next unless beginning.match?(line)
              # In development `rails server` starts Heddle, so such a line needs no change.
              next if development && line.match?(/rails s(?:erver)?\b/)

              text = StartCommand.translate(line, bind: (@bind unless development))
              replace(lines, path, index..index, text, START_REASON) if text
            rescue StartCommand::UnknownWordError, PumaTranslation::SkippedError => e
              @report.push("#{path}:#{index + 1} was not changed: #{e.message}.", "  #{PrintableText.line(line)}", "")
            end
          end
        end

        def prepare_database(lines, path, index, line)
          indent = line[/\A\s*/]
          replace(lines, path, index..index, "#{indent}#{PREPARES}", "Now the script also prepares the database " \
                                                                     "before Heddle starts.")
        end

        def edit_test(path)
          edit(path) do |lines|
            lines.to_a.each_with_index do |line, index|
              text = line[CAPYBARA, 1] or next
              replace(lines, path, index..index, "#{text}:heddle", "System tests then run on the same server as " \
                                                                   "production.")
            end
          end
        end
      end
    end
  end
end
