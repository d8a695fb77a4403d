# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # Formats a server's status as lines of text. With an earlier status, it also shows requests a second, and computes
    # latencies and shares of time since then.
    class StatusText
      Autoloads.add(self, "heddle/cli/status_text")

      LATENCY_BOUNDS = HTTP::Engine::LATENCY_BOUNDS
      # The assumed width of a terminal that does not report it.
      COLUMNS = 120
      # Maximum number of lines of each list of requests.
      LINES = 20
      # On a terminal with fewer lines than this, the text has no empty lines.
      TIGHT = 36
      NO_WORKER = "no worker runs: the application is being loaded, or can't be loaded (see the log)"
      private_constant :LATENCY_BOUNDS, :COLUMNS, :LINES, :TIGHT, :NO_WORKER

      # @param report [Hash{Symbol => Object}] see Server::Control::SingleProcess#report
      # @param before [Hash{Symbol => Object}, nil] an earlier report
      # @param elapsed [Float, nil] seconds between the two reports
      # @param rows [Integer, nil] maximum number of lines; nil: any number
      # @param columns [Integer, nil] width of the terminal; lists and summaries are wrapped or cut to fit
      def initialize(report, before = nil, elapsed = nil, rows: nil, columns: nil)
        @report = report
        @before = before
        @elapsed = elapsed
        @rows = rows
        @columns = columns || COLUMNS
      end

      # @return [Array<String, Array>] see {Screen}
      def lines
        return [[[heading, :title]], *gap, NO_WORKER] if all.empty?

        most = @rows ? [(@rows / 3) - 1, 2].max : nil
        head = [*summary, *gap, *truncate(table.lines, most), *problems, *unprotected]
        head + lists(@rows && (@rows - head.size))
      end

      private

      def all = @report[:workers]

      # What separates two parts of the text: an empty line, or nothing.
      def gap = @rows && @rows < TIGHT ? [] : [""]

      def summary = [[[heading, :title]], traffic, *spent, *wrapped(protection)]

      def table = Workers.new(all, columns: @columns) { |one| worker_rate(one) }

      def heading
        one = all.find { |worker| worker[:urls]&.any? } || all.find { |worker| worker[:version] } || {}
        ruby = "Ruby #{[one[:ruby], one[:jit]].compact.join(" ")}" if one[:ruby]
        ["Heddle #{one[:version] || VERSION}", ruby, one[:selector], one[:urls]&.join(" ")].compact.join("  ")
      end

      def traffic
        parts = []
        parts << "#{Format.rate(all.sum { |one| worker_rate(one) || 0 })} req/s" if @before
        counts = latencies
        if counts.sum > 0
          parts << [50, 95, 99].map { |nth| "p#{nth} #{Format.duration(percentile(counts, nth))}" }.join("  ")
        end
        parts << "answered #{total(:answered) { |one| one[:answers].to_a.sum }}"
        parts << "rejected #{total(:rejected) { |one| one[:rejections].to_h.values.sum }}"
        parts << "5xx #{total(:failed) { |one| one[:answers].to_a[5] }}"
        parts << "clients gone #{total(:gone) { |one| one[:clients_gone] }}"
        parts.join("   ")
      end

      # A sum over all workers, including the ones that have ended, so that it never falls.
      def total(name) = @report.dig(:master, :ended_workers, name).to_i + all.sum { |one| yield(one).to_i }

      # How requests have spent their time since the report `before` (without it, since the start), the largest parts
      # first.
      def spent
        before = seconds_by_part(@before ? @before[:workers] : [])
        parts = seconds_by_part(all).except(:proxy).map { |part, seconds| [part, seconds - before.fetch(part, 0)] }
        total = parts.sum(&:last)
        return if total <= 0

        shares = parts.map { |part, seconds| [part, (seconds * 100 / total).round] }.select { |_, share| share > 0 }
        shown = shares.sort_by { |_, share| -share }.map { |part, share| "#{part} #{share} %" }
        "time of requests: #{shown.join("  ")}"
      end

      def seconds_by_part(workers)
        workers.filter_map { |one| one[:spent] }.reduce({}) do |sums, one|
          sums.merge(one.transform_values(&:last)) { |_, mine, more| mine + more }
        end
      end

      def protection
        on = all.filter_map { |one| one[:protection] }
        return [] if on.empty?

        names = on.reduce(:|)
        ["protection: #{names.empty? ? "none" : names.join(", ")}", offloaded, preempted, handed_off, stalled].compact
      end

      def offloaded
        found = all.filter_map { |one| one[:offload] }
        return if found.empty?

        calls, running, queued, threads = %i[calls running queued threads].map do |key|
          found.sum { |one| one[key].to_i }
        end
        missing = found.flat_map { |one| one[:missing].to_a }.uniq
        "offloaded #{calls} (#{running} run, #{queued} wait, #{threads} threads)" +
          (missing.empty? ? "" : ", not intercepted: #{missing.join(" ")}")
      end

      def preempted = counted(:preemptions) { |sum| "preempted #{sum}" }

      def handed_off = counted(:handed_off) { |sum| "handed off #{sum}" }

      def counted(key)
        found = all.filter_map { |one| one[key] }
        yield found.sum unless found.empty?
      end

      def stalled
        found = all.filter_map { |one| one[:stalls] }
        return if found.empty?

        "stalls #{found.sum { |one| one[:count] }} (#{Format.duration(found.sum { |one| one[:seconds] })})"
      end

      # Joins the parts to lines that fit the terminal's width.
      def wrapped(parts)
        parts.each_with_object([]) do |part, lines|
          if lines.any? && lines.last.length + 3 + part.length <= @columns then lines.last << "   " << part
          else lines << +part
          end
        end
      end

      # The counts of the latency histogram since the report `before`; without it, since the start.
      def latencies
        sums = sum_of(all)
        return sums unless @before

        sums.zip(sum_of(@before[:workers])).map { |now, then_| [now - then_.to_i, 0].max }
      end

      def sum_of(workers)
        lists = workers.filter_map { |one| one[:latencies] }
        lists.empty? ? [] : lists.transpose.map(&:sum)
      end

      # Interpolates within the percentile's bucket, as if its requests were spread evenly.
      def percentile(counts, percent)
        rank = counts.sum * percent / 100.0
        LATENCY_BOUNDS[..-2].zip([0, *LATENCY_BOUNDS], counts) do |upper, lower, count|
          return lower + ((upper - lower) * rank / count) if count.positive? && rank <= count

          rank -= count
        end
        LATENCY_BOUNDS[-2]
      end

      # Requests a second of a worker. The counters of a worker that was not in the report `before` started at 0.
      def worker_rate(one)
        return unless @before && one[:answers]

        earlier = @before[:workers].find { |other| other[:pid] == one[:pid] }
        (one[:answers].sum - (earlier&.fetch(:answers, nil)&.sum || 0)) / @elapsed
      end

      # The lines that need an operator's attention.
      def problems
        found = all.flat_map do |one|
          [without_heartbeat(one), limited(one), one[:problem] && "worker #{one[:index]}: #{one[:problem]}"].compact
        end
        found.empty? ? [] : [*gap, *found.map { |text| [["! #{text}", :bad]] }]
      end

      def without_heartbeat(one)
        age = one[:heartbeat_age] or return
        "worker #{one[:index]}: its event loop has sent no heartbeat for #{Format.duration(age)}" if age > 2
      end

      def limited(one)
        return unless one[:limit] && one[:waiting].to_i > 0

        "worker #{one[:index]}: at most #{one[:limit]} requests run at once (#{one[:limited_by]}), " \
          "#{one[:waiting]} wait"
      end

      # The workers without protections, by reason, and a line if crashes have switched protections off for new workers.
      def unprotected
        lines = all.select { |one| one[:unprotected] }.group_by { |one| one[:unprotected] }.map do |reason, workers|
          "without protection (#{reason}): worker #{workers.map { |one| one[:index] }.join(", ")}"
        end
        lines.unshift([[tripped_notice, :bad]]) if @report.dig(:master, :protection, :tripped)
        lines.empty? ? [] : [*gap, *lines]
      end

      def tripped_notice
        "! protections are off in new workers: #{@report.dig(:master, :protection, :off)}. `heddle protect on` " \
          "switches them on"
      end

      # The lists of requests, cut to the room on the screen. Each list in turn gets the lines that it needs, but at
      # most an equal share of the remaining lines.
      def lists(room)
        found = Requests.new(all, columns: @columns).lists
        found.each_with_index.flat_map do |list, index|
          share = [list.lines.size, LINES].min + heading_size
          share = [share, room / (found.size - index)].min if room
          next [] if share < heading_size + [list.lines.size, 1].min

          room -= share if room
          [*gap, [[list.heading, :title]], *truncate(list.lines, share - heading_size)]
        end
      end

      # Number of lines of a list's heading, including the blank line above it.
      def heading_size = gap.size + 1

      # @return [Array] the first lines and, if some are left out, a line with their number
      def truncate(lines, most)
        return lines if most.nil? || lines.size <= most

        [*lines.first([most - 1, 0].max), "        … and #{lines.size - most + 1} more"]
      end
    end
  end
end
