# frozen_string_literal: true

module Heddle
  module CLI
    class StatusText
      # The lists of the status: running requests, pools, the slowest responses, stalls, and endpoints with the most
      # stall time.
      class Requests
        # A heading, and the lines below it.
        List = Data.define(:heading, :lines)

        # @param workers [Array<Hash>] see Server::WorkerStatus#to_h
        # @param columns [Integer]
        def initialize(workers, columns:)
          @workers = workers
          # Number of characters for method and target. The fields before them need 19 characters, and about 30 remain
          # for the file and line after them.
          @room = (columns - 50).clamp(20, 60)
        end

        # Number of endpoints of the stall history that are listed.
        ENDPOINTS = 3
        private_constant :ENDPOINTS

        # @return [Array<List>]
        def lists = [running, *[pools, slowest, stalls, stall_history].reject { |one| one.lines.empty? }]

        private

        def running
          found = each(:requests).sort_by { |_, one| -one[:age] }
          lines = found.map do |index, one|
            row(index, one[:age], request("#{one[:method]} #{one[:target]}"), place(one[:at]))
          end
          List.new(lines.empty? ? "no request runs" : "running requests, oldest first", lines)
        end

        def pools
          lines = each(:pools).map do |index, one|
            counted = "; waits: #{one[:waits]}, #{Format.duration(one[:wait_seconds])} in total" if one[:waits]
            timeouts = one[:timeouts].to_i.positive? ? "; timeouts: #{one[:timeouts]}" : ""
            total = " (all workers: #{one[:size_total]}, limit #{one[:max_total]})" if one[:max_total]
            "#{index.to_s.rjust(6)}  #{one[:busy]} of #{one[:size]} in use, limit #{one[:limit]}#{total}, " \
              "#{one[:waiting]} waiting#{counted}#{timeouts}  #{PrintableText.line(one[:pool])} (#{one[:library]})"
          end
          List.new("pools", lines)
        end

        def slowest
          found = each(:slowest).sort_by { |_, one| -one[:seconds] }
          lines = found.map do |index, one|
            row(index, one[:seconds], request(one[:request]), "#{one[:status]}, #{Format.duration(one[:ago])} ago")
          end
          List.new("slowest responses of the last 5 minutes", lines)
        end

        def stalls
          found = @workers.flat_map { |one| (one.dig(:stalls, :recent) || []).map { |stall| [one[:index], stall] } }
          lines = found.sort_by { |_, one| one[:ago] }.map do |index, one|
            about = [one[:cause].tr("_", " "), Format.place(one[:place]), "#{Format.duration(one[:ago])} ago"]
            row(index, one[:seconds], request(one[:request] || "(no request)"), about.reject(&:empty?).join(", "))
          end
          List.new("stalls of the last minute, newest first", lines)
        end

        def stall_history
          counts = @workers.flat_map { |one| one.dig(:stalls, :by_endpoint).to_a }
          merged = counts.group_by(&:first).map do |endpoint, found|
            [endpoint.to_s, %i[count seconds].map { |key| found.sum { |_, count| count[key] } }]
          end
          largest = merged.max_by(ENDPOINTS) { |_, (_, seconds)| seconds }
          lines = largest.map { |endpoint, (count, seconds)| row(count, seconds, PrintableText.line(endpoint)) }
          List.new("endpoints with the most stall time since the workers started: stalls, total time", lines)
        end

        def each(key) = @workers.flat_map { |one| (one[key] || []).map { |found| [one[:index], found] } }

        def row(number, seconds, *rest)
          [number.to_s.rjust(6), Format.duration(seconds).rjust(9), *rest].join("  ")
        end

        # Clients choose this text. It is escaped before it is cut, so that the following columns stay aligned.
        def request(text) = PrintableText.line(text)[0, @room].ljust(@room)

        def place(places)
          here = "#{Dir.pwd}/"
          places = Array(places)
          Format.place(places.find { |line| line.start_with?(here) } || places.first)
        end
      end
    end
  end
end
