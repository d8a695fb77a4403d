# frozen_string_literal: true

module Bench
  module Seeds
    # docs/benchmarks/README.md: its tables and its list of runs are made of the catalog and the stored results.
    class Page
      PATH = File.join(ROOT, "docs", "benchmarks", "README.md")
      MARKS = /(?<=<!-- figures -->\n).*(?=<!-- end of figures -->)/m
      HEADINGS = ["", "what", "reported then", "measured now", "peers now", "command"].freeze

      # @param catalog [Catalog]
      # @param path [String]
      def initialize(catalog, path: PATH)
        @catalog = catalog
        @path = path
      end

      # @return [String] for a terminal
      def to_text
        lines = @catalog.lines.map { |line| [line.id, line.what, line.reported, line.now, line.peers] }
        Table.new(HEADINGS[..-2], lines).to_text
      end

      # @return [String] what is between the marks
      def to_markdown
        tables = @catalog.sections.map { |title, lines| "### #{title}\n\n#{table(lines)}" }
        "\n#{[*tables, "### Machines", machines, "### Runs", runs, "### Versions", versions].join("\n\n")}\n\n"
      end

      # @return [String] the page's path
      def write
        File.write(@path, content.sub(MARKS) { to_markdown })
        @path
      end

      # @return [Array<String>] figures without a line, lines without a figure, and a page that is not up to date
      def complaints
        [*(Catalog::FIGURES - @catalog.lines.map(&:id)).map { |id| "#{id} has no line in figures.yml" },
         *@catalog.lines.filter_map { |line| complaint(line) },
         *("docs/benchmarks/README.md is not up to date: bin/bench seeds --write" if content[MARKS] != to_markdown)]
      end

      private

      def content = File.read(@path)

      def complaint(line)
        where = "#{line.id} (#{line.row})"
        return "#{where} has a figure, and figures.yml says that it has none" if line.measured? && line.unmeasured
        return if line.measured? || line.unmeasured

        "#{where} has no figure: run bin/bench seeds --measure #{line.id}, or say `unmeasured: COMMIT`"
      end

      def table(lines)
        cells = lines.map { |line| [line.id, line.what, line.reported, line.now, line.peers, "`#{line.command}`"] }
        markdown(HEADINGS, cells)
      end

      RUN_HEADINGS = ["command", "rows", "commit", "date", "Ruby", "load, nice", "rounds", "result"].freeze
      private_constant :RUN_HEADINGS

      def runs
        cells = stored_runs.map do |name, run|
          environment = run.fetch(:environment)
          ["`#{run[:command]}`", run[:rows].map { |row| row[:key] }.join(", "), run[:commit], run[:date],
           environment[:Ruby], environment.values_at(:"load before the run", :nice).compact.join(", "), run[:rounds],
           "[#{name}.json](results/#{name}.json)"]
        end
        markdown(RUN_HEADINGS, cells)
      end

      def versions
        contestants = stored_runs.flat_map { |_, run| run.fetch(:contestants) }
        markdown(%w[contestant version], contestants.map { |one| one.values_at(:label, :version) }.uniq.sort)
      end

      def machines
        kinds = stored_runs.map { |_, run| run[:environment].values_at(:processor, :cores, :memory, :kernel) }.uniq
        kinds.map { |name, cores, memory, kernel| "- #{name}, #{cores} cores, #{memory}, #{kernel}" }.join("\n")
      end

      def stored_runs = @catalog.stored.flat_map { |name, stored| stored.runs.map { |run| [name, run] } }

      # Words to the left: most cells have some.
      def markdown(headings, cells)
        Table.new(headings, cells).to_markdown.sub(/^\| --- .*/, "|#{" --- |" * headings.size}").strip
      end
    end
  end
end
