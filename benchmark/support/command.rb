# frozen_string_literal: true

module Bench
  # What `bin/bench NAME` does.
  module Command
    module_function

    # @param suite_name [String]
    # @param arguments [Array<String>]
    # @return [Boolean] whether everything that was asked for was run
    def run(suite_name, arguments)
      options = Options.new(arguments, program: "bin/bench #{suite_name}")
      suite = Suite.load(suite_name)
      return list(suite) if options.list?

      MapCount.allowed = options.raise_map_count?
      result = if options.report
                 JSON.parse(File.read(options.report),
                            symbolize_names: true)
               else
                 Runner.new(suite, options).run
               end
      hand_over(Publication.new(suite_name, result), Report.new(result), options)
      store(result, options.json, command_line(suite_name, arguments)) if options.json
      true
    rescue OptionParser::ParseError, ArgumentError, StoredResult::Refused => e
      warn("bin/bench #{suite_name}: #{e.message}")
      false
    end

    def list(suite)
      puts("rows:", *suite.rows.map { |row| "  #{row.key.ljust(18)} #{row.title}, #{row.unit}" })
      puts("contestants:", *suite.participants.map { |one| "  #{one.key}" })
      true
    end
    private_class_method :list

    def hand_over(publication, report, options)
      puts(report.to_text)
      warn("written: #{publication.save}") unless options.report && !options.publish?
      warn("published: #{publication.publish}") if options.publish?
    end
    private_class_method :hand_over

    def store(result, file, command)
      warn("stored: #{StoredResult.new(file).add(result, command:).write}")
    end
    private_class_method :store

    # What repeats the run, wherever its result is stored.
    def command_line(suite_name, arguments)
      kept = arguments.join(" ").gsub(/--json[ =]\S+/, "").squeeze(" ").strip
      ["bin/bench", suite_name, *(kept unless kept.empty?)].join(" ")
    end
    private_class_method :command_line
  end
end
