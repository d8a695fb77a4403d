# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # What a server tells of itself as lines for a person, alone or beside what it told a while before.
    class Overview
      LATENCY_BOUNDS = HTTP::H1::Engine::LATENCY_BOUNDS
      # Header, and for each worker its cell.
      COLUMNS = {
        "worker" => ->(one, _) { one[:index] }, "pid" => ->(one, _) { one[:pid] },
        "state" => ->(one, _) { one[:state] }, "req/s" => ->(_one, rate) { rate && Units.rate(rate) },
        "running" => ->(one, _) { one[:running] }, "waiting" => ->(one, _) { one[:waiting] },
        "idle" => ->(one, _) { one[:idle] }, "lag" => ->(one, _) { Units.duration(one[:lag]) },
        "fibers" => ->(one, _) { one[:fibers] }, "memory" => ->(one, _) { Units.bytes(one[:pss] || one[:memory]) },
        "gc" => ->(one, _) { one.dig(:gc, :count) },
        "up" => ->(one, _) { one[:started] && Units.duration(Time.now.to_f - one[:started]) }
      }.freeze
      # Endpoints that are listed.
      LEARNED = 3
      private_constant :LATENCY_BOUNDS, :COLUMNS, :LEARNED

      # @param report [Hash{Symbol => Object}] see Server::Control::Alone#report
      # @param before [Hash{Symbol => Object}, nil] an earlier one
      # @param elapsed [Float, nil] seconds between them
      # @param requests [Integer] how many running requests to list
      def initialize(report, before = nil, elapsed = nil, requests: 20)
        @report = report
        @before = before
        @elapsed = elapsed
        @requests = requests
      end

      # @return [Array<String>]
      def lines = [heading, traffic, "", *workers, *problems, *unprotected, *learned, *requests]

      private

      def all = @report[:workers]

      def heading
        one = all.find { |worker| worker[:urls]&.any? } || all.find { |worker| worker[:version] } || {}
        jit = one[:jit] ? " #{one[:jit]}" : ""
        urls = Array(one[:urls]).join(" ")
        "Heddle #{one[:version] || VERSION}  Ruby #{one[:ruby]}#{jit}  #{one[:selector]}  #{urls}"
      end

      def traffic
        parts = []
        parts << "#{Units.rate(rate(all, :answers))} req/s" if @before
        counts = latencies
        if counts.sum > 0
          parts << [50, 95, 99].map { |percent|
            "p#{percent} #{Units.duration(percentile(counts, percent))}"
          }.join("  ")
        end
        parts << "answered #{total(:answers)}" << "refused #{total(:refusals)}"
        parts << "5xx #{all.sum { |one| one[:answers] ? one[:answers][5] : 0 }}"
        parts << "clients gone #{all.sum { |one| one[:clients_gone].to_i }}"
        parts.join("   ")
      end

      def total(key) = all.sum { |one| one[key] ? one[key].sum : 0 }

      # What was counted since the report before; without one, ever.
      def latencies
        sums = sum_of(all)
        return sums unless @before

        recent = sums.zip(sum_of(@before[:workers])).map { |now, then_| [now - then_.to_i, 0].max }
        recent.sum > 0 ? recent : sums.map { 0 }
      end

      def sum_of(workers)
        lists = workers.filter_map { |one| one[:latencies] }
        lists.empty? ? [] : lists.transpose.map(&:sum)
      end

      # Where a bucket ends: what it counts took less.
      def percentile(counts, percent)
        rank = counts.sum * percent / 100.0
        counts.each_with_index { |count, i| return LATENCY_BOUNDS[i] if (rank -= count) <= 0 }
        LATENCY_BOUNDS[-2]
      end

      def rate(workers, key)
        workers.sum { |one| worker_rate(one, key) || 0 }
      end

      # A worker that was replaced counts from its own beginning.
      def worker_rate(one, key = :answers)
        return unless @before && one[key]

        earlier = @before[:workers].find { |other| other[:pid] == one[:pid] }
        (one[key].sum - (earlier&.fetch(key, nil)&.sum || 0)) / @elapsed
      end

      def workers
        rows = all.map { |one| COLUMNS.values.map { |cell| cell.call(one, worker_rate(one)).to_s } }
        rows.unshift(COLUMNS.keys)
        widths = rows.transpose.map { |cells| cells.map(&:length).max }
        rows.map { |cells| cells.zip(widths).map { |cell, width| cell.rjust(width) }.join("  ") }
      end

      # What an operator should see before anything else.
      def problems
        found = all.flat_map do |one|
          [held_up(one), limited(one), one[:problem] && "worker #{one[:index]}: #{one[:problem]}"].compact
        end
        found.empty? ? [] : ["", *found.map { |text| "! #{text}" }]
      end

      def held_up(one)
        beat = one[:beat] or return
        "worker #{one[:index]}: its loop has not turned for #{Units.duration(beat)}" if beat > 2
      end

      def limited(one)
        return unless one[:limit] && one[:waiting].to_i > 0

        "worker #{one[:index]}: #{one[:limit]} requests run at once (#{one[:limited_by]}), #{one[:waiting]} wait"
      end

      # Some workers do without what others have.
      def unprotected
        without, with = all.select { |one| one[:protection] }.partition { |one| one[:protection].empty? }
        return [] if without.empty? || with.empty?

        ["", "without protection (unprotected_share): worker #{without.map { |one| one[:index] }.join(", ")}"]
      end

      # Those that hold up their workers most.
      def learned
        found = Array(@report[:learned]).first(LEARNED)
        return [] if found.empty?

        ["", "endpoints that hold up their worker (heddle learned):", *LearnedTable.new(found).lines]
      end

      def requests
        found = all.flat_map { |one| (one[:requests] || []).map { |request| [one[:index], request] } }
        return ["", "no request runs"] if found.empty?

        found = found.sort_by { |_, request| -request[:age] }.first(@requests)
        widest = found.map { |_, request| request[:target].length }.max.clamp(4, 50)
        ["", "requests that run, the oldest first:",
         *found.map { |index, request| row(index, request, widest) }]
      end

      def row(index, request, widest)
        here = "#{Dir.pwd}/"
        places = Array(request[:at])
        where = (places.find { |line| line.start_with?(here) } || places.first).to_s.delete_prefix(here)
        format("%6s  %8s  %-7s %-#{widest}s  %s", index, Units.duration(request[:age]), visible(request[:method]),
               visible(request[:target])[0, widest], where)
      end

      # A client chooses what stands here, and a terminal obeys some of it.
      def visible(text) = text.gsub(/[^[:print:]]/, "?")

      # Figures as a person reads them.
      module Units
        class << self
          def duration(seconds)
            return "" unless seconds
            return "#{(seconds * 1_000).round(1)} ms" if seconds < 1
            return "#{seconds.round(1)} s" if seconds < 120
            return "#{(seconds / 60).floor} min" if seconds < 7_200

            seconds < 172_800 ? "#{(seconds / 3_600).floor} h" : "#{(seconds / 86_400).floor} d"
          end

          def bytes(count) = count ? "#{(count / 1_048_576.0).round} MB" : ""

          def rate(number)
            number < 100 ? number.round(1).to_s : number.round.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
          end
        end
      end
      private_constant :Units
    end
  end
end
