# frozen_string_literal: true

require_relative "slope"

module SoakTest
  # What a run has shown, as plain values, and whether it is as it is to be.
  class Report
    # MB an hour; descriptors more than at first.
    SLOPE = 1.0
    DESCRIPTORS = 3
    # Part of the time after the warm-up that a process lives through to have a slope.
    LEAST = 0.3
    # Spans of time, each of which counts by its least memory.
    SPANS = 12

    # @param values [Hash{String => Object}] what to_h gave
    def initialize(values)
      @values = values
    end

    # @param result [Run::Result]
    # @param about [Hash{String => Object}] command, commit, date, Ruby …
    # @return [Report]
    def self.of(result, about)
      new({ **about, **Measures.new(result).to_h })
    end

    # @return [Hash{String => Object}] for JSON
    def to_h = { **@values, "problems" => problems }

    # @return [Array<String>] what is not as it is to be
    def problems
      processes = @values["processes"]
      [("no worker lived long enough to have a slope" if processes.none? { |one| one["role"].include?("worker") }),
       *processes.flat_map { |one| problems_of(one) },
       *@values["lost"].map { |one| "lost: #{one.values_at("kind", "error", "time").join(", ")}" },
       *@values["errors"].map { |one| "wrong: #{one.values_at("kind", "error", "time").join(", ")}" },
       *@values["missing"].map { |name, count| "#{count} #{name} are missing" if count.positive? }].compact
    end

    # @return [String]
    def to_s
      lost, errors = @values.values_at("lost", "errors").map(&:size)
      [*@values.slice("command", "commit", "date", "Ruby", "allocator").map { |name, value| "#{name}: #{value}" },
       "#{@values["hours"]} h, #{@values["responses"]} responses (#{@values["rate"]} a second), " \
       "#{@values["cpu_percent"]} % of a processor",
       *@values.values_at("disturbances", "answered").map { |counts| counts.map { |pair| pair.join(": ") }.join(", ") },
       "lost with killed workers: #{@values["lost_with_workers"]}, lost otherwise: #{lost}",
       "5xx while the database restarts: #{@values["errors_of_database"]}, otherwise: #{errors}",
       *@values["processes"].map { |one| line(one) },
       *(problems.empty? ? "passed" : problems)].join("\n")
    end

    private

    def problems_of(one)
      [("#{one["role"]} grows by #{one["slope"]} MB an hour" if one["slope"] >= SLOPE),
       ("#{one["role"]} has #{one["descriptors"].join(", then ")} descriptors" if
         one["descriptors"].last > one["descriptors"].first + DESCRIPTORS)].compact
    end

    def line(one)
      memory, own = [%w[memory slope], %w[own own_slope]].map do |values, slope|
        "#{one[values].join(" MB, then ")} MB (#{"+" unless one[slope].negative?}#{one[slope]} MB an hour)"
      end
      "#{one["role"]}: #{memory}, its own #{own}; #{one["descriptors"].join(", then ")} descriptors; " \
        "#{one["samples"]} samples in #{one["hours"]} h#{parts(one["parts"])}"
    end

    def parts(parts)
      return if parts.nil? || parts.empty?

      "; its parts: #{parts.map { |name, values| "#{name} #{values.compact.join(", then ")} MB" }.join("; ")}"
    end

    # The figures of a run.
    class Measures
      def initialize(result)
        @result = result
      end

      def to_h
        answered = @result.clients.answered.sort.to_h
        lost = @result.clients.lost.group_by { |one| of_killed_worker?(one) }
        errors = @result.clients.errors.group_by { |one| of_database?(one) }
        responses = answered.except("stream opened again", "event", "WebSocket closed").values.sum
        { "hours" => (@result.seconds / 3_600.0).round(2), "responses" => responses,
          "rate" => (responses / @result.seconds).round(1),
          "cpu_percent" => (@result.cpu_seconds * 100 / @result.seconds).round(1),
          "answered" => answered, "disturbances" => @result.disturbances.map { |one| one.kind.to_s }.tally,
          "lost_with_workers" => lost.fetch(true, []).size, "lost" => list(lost[false]),
          "errors_of_database" => errors.fetch(true, []).size, "errors" => list(errors[false]),
          "missing" => { "notes" => @result.missing[:notes], "jobs" => @result.missing[:jobs],
                         "events" => @result.unseen },
          "processes" => processes }
      end

      private

      # Whose connection it was the client does not know: workers hand connections over.
      def of_killed_worker?(failure)
        @result.disturbances.any? do |one|
          one.kind == :kill && (failure.time - one.time).between?(-1, Run::GRACE)
        end
      end

      def of_database?(failure)
        stops, starts = %i[database_stops database_starts].map do |kind|
          @result.disturbances.select { |one| one.kind == kind }.map(&:time)
        end
        stops.zip(starts).any? { |from, to| failure.time.between?(from - 1, (to || from) + Run::GRACE) }
      end

      def list(failures)
        failures.to_a.map { |one| one.to_h.transform_keys(&:to_s).merge("time" => one.time.round(1)) }
      end

      # Of each process that lived through most of the time after the warm-up.
      def processes
        warm = @result.samples.select { |one| one.time >= Run::WARM * @result.seconds }.map { |one| without_jit(one) }
        least = LEAST * (1 - Run::WARM) * @result.seconds
        warm.group_by { |one| [one.role, one.pid] }.filter_map do |(role, _), samples|
          long = samples.last.time - samples.first.time >= least
          process(role, samples) if long && !role.include?("reserve")
        end
      end

      # Methods are compiled when they have been called often enough: that is no leak, and is a part of its own.
      def without_jit(sample) = sample.with(memory: sample.memory - sample.parts.fetch("YJIT", 0))

      def process(role, samples)
        thirds = [samples.first((samples.size / 3.0).ceil), samples.last((samples.size / 3.0).ceil)]
        hours = (samples.last.time - samples.first.time) / 3_600
        { "role" => role, "samples" => samples.size, "hours" => hours.round(2),
          **{ "memory" => :memory, "own" => :own }.transform_values do |name|
            thirds.map { |some| median(some.map(&name)).round(1) }
          end,
          "slope" => slope(samples, :memory), "own_slope" => slope(samples, :own),
          "descriptors" => thirds.map { |some| median(some.map(&:descriptors)) },
          "parts" => samples.last.parts.keys.to_h do |name|
            [name, thirds.map { |some| median(some.filter_map { |one| one.parts[name] })&.round(1) }]
          end }
      end

      # Of the least values: what a garbage collection frees is not a leak.
      def slope(samples, name)
        least = samples.each_slice((samples.size / SPANS.to_f).ceil).map { |some| some.min_by(&name) }
        ((Slope.of(least.map { |one| [one.time, one.public_send(name)] }) || 0) * 3_600).round(2)
      end

      def median(values) = values.sort[values.size / 2]
    end
    private_constant :Measures
  end
end
