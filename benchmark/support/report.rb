# frozen_string_literal: true

module Bench
  # A finished run as text for the terminal and as Markdown for the documentation: the circumstances, one table of
  # medians, and the details of every row.
  class Report
    DETAIL_NAMES = { cpu_s: "CPU s", cpu_us: "CPU µs each", rss_mb: "memory MB", p99_ms: "p99 ms", mean_ms: "mean ms",
                     quiet_p99_ms: "p99 ms before", quiet_ms: "latest before, ms",
                     socket_errors: "socket errors", errors: "errors",
                     pss_mb: "PSS MB", resident_mb: "RSS MB", p50_ms: "p50 ms", max_ms: "longest ms",
                     first_ms: "first messages, ms", first_line_ms: "first line, ms", body_bytes: "bytes of a body",
                     tests: "tests", assertions: "assertions", rate: "req/s asked", per_core: "req/s a core",
                     empty_mb: "empty server MB", created_s: "created after s", objects: "objects each",
                     joined_s: "joined after s", gone_ms: "gone after ms",
                     unavailable: "answers with 503", answered: "answered 1/s",
                     closed: "closed sockets", resets: "resets", unconfirmed: "not confirmed", doubled: "twice" }.freeze

    REMARK = 120 # characters

    attr_reader :rows, :contestants

    # @param result [Hash] what Runner#run gave, or the same read from a file
    def initialize(result)
      @result = result
      @contestants = result.fetch(:contestants)
      @rows = result.fetch(:rows).map { |row| RowResult.new(row, @contestants) }
    end

    # @return [String]
    def title = @result.fetch(:title)

    # @return [String, nil] the key of the contestant that has a column of ratios of its own
    def reference = @result[:reference]

    # The same run with another figure in the place of the value: less of it is better.
    #
    # @param detail [Symbol] what the samples call it
    # @return [Report] of those rows that have the figure
    def of(detail, unit:, title:)
      rows = @result.fetch(:rows).filter_map do |row|
        next unless row.fetch(:details).map(&:to_sym).include?(detail)

        sets = row.fetch(:sets).map do |set|
          set.merge(samples: set.fetch(:samples).filter_map { |sample| sample[detail] && { value: sample[detail] } })
        end
        row.merge(sets:, unit:, better: "lower", details: [], shown: [], goals: [])
      end
      Report.new(@result.merge(rows:, title:))
    end

    # @return [String] for a terminal
    def to_text
      [heading, circumstances.map { |name, value| "#{name}: #{value}" }.join("\n"),
       versions.map { |label, version| "  #{label}: #{version}" }.join("\n"),
       overview(text: true).to_text, *rows.map do |row|
                                       "#{row.title} (#{row.unit})\n#{details(row).to_text}"
                                     end].join("\n\n")
    end

    # @return [String] for a page
    def to_markdown
      [overview(text: false).to_markdown, legend, list(circumstances), "### Contestants", list(versions),
       "### Details", *rows.map { |row| "#### #{row.title}\n\n#{details(row).to_markdown}" }].join("\n\n")
    end

    private

    def heading = quick? ? "#{title}: a smoke run, its figures mean nothing" : title

    def quick? = @result[:quick]

    def legend
      "Medians of #{@result.fetch(:rounds)} interleaved rounds. “Heddle / best peer” is how many times as good as " \
        "the best peer Heddle is#{@result[:legend] || ", with the better of its selectors"}; above 1 is ahead. “–”: " \
        "does not take part; “failed”: see the details#{"; †: with errors, see the details" if erred?}."
    end

    def erred? = rows.any? { |row| row.sets.any? { |set| row.erred?(set) } }

    def circumstances
      @result.fetch(:environment).transform_keys(&:to_s).merge("rounds" => @result.fetch(:rounds).to_s)
    end

    def versions
      contestants.to_h { |one| [one[:label], one[:version] || "not run: #{one[:missing]}"] }
    end

    def list(pairs) = pairs.map { |name, value| "- #{name}: #{value}" }.join("\n")

    # Terminals are narrow: there the rows have their short names and the columns wrap nothing.
    def overview(text:)
      present = contestants.select { |contestant| contestant[:version] }
      lines = rows.flat_map do |row|
        [:value, *row.shown].each_with_index.map do |key, index|
          heading = "#{text ? row.key : row.title}, #{row.unit}"
          [key == :value ? heading : "· #{DETAIL_NAMES.fetch(key)}",
           *present.map { |one| row.cell(row.set(one[:key]), key) }, *standings(row, key),
           *(verdict(row, index) if goals?)]
        end
      end
      Table.new(["", *present.map { |one| one[:label] }, *standing_names], lines)
    end

    def standing_names
      ["Heddle / best peer", *("Heddle / #{reference}" if reference), *("goals" if goals?)]
    end

    # @return [Array<String>] how Heddle compares, on the line of the value
    def standings(row, key)
      return [key, *reference].map { "" } unless key == :value

      [standing(row), *(Figure.times(row.ratio(row.best_heddle, row.set(reference))) if reference)]
    end

    # @return [String] a goal a line; those for which there is no line left stand on the last one
    def verdict(row, index)
      (index < row.shown.size ? [row.verdicts[index]] : row.verdicts.drop(index)).join("; ")
    end

    def goals? = rows.any? { |row| row.verdicts.any? }

    def standing(row)
      ours = row.best_heddle
      ratio = row.advantage(ours)
      return "–" unless ratio

      "#{Figure.times(ratio)} #{row.label(row.best_peer)}"
    end

    def details(row)
      names = row.details.map { |detail| DETAIL_NAMES.fetch(detail) }
      lines = row.sets.map do |set|
        [row.label(set), row.cell(set), spread(set), Figure.times(row.advantage(set)),
         *row.details.map { |detail| Figure.format(set.median(detail)) }, remark(set)]
      end
      Table.new(["", "median, #{row.unit}", "min–max", "to the best peer", *names, "remark"], lines)
    end

    def spread(set) = set.complete? ? "#{Figure.format(set.min)}–#{Figure.format(set.max)}" : "–"

    # Some libraries explain an error in paragraphs.
    def remark(set) = [set.failure&.slice(0, REMARK), *set.notes].compact.join("; ")
  end
end
