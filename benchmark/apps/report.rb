# frozen_string_literal: true

module Bench
  module Apps
    # What was measured with one application.
    class Report
      HEADINGS = ["clients", "server", "requests/s", "p50 ms", "p99 ms", "CPU ms a request", "errors"].freeze

      # @param application [Application]
      # @param crawl [Crawl]
      def initialize(application, crawl)
        @application = application
        @crawl = crawl
        @results = Hash.new { |hash, key| hash[key] = [] }
        @memory = {}
      end

      # @param name [String] of the server
      # @param clients [Integer]
      # @param result [Load::Result]
      # @return [void]
      def add(name, clients, result) = @results[[clients, name]] << result

      # @return [void]
      def memory(name, megabytes) = @memory[name] = megabytes

      # @return [String]
      def to_text = words(Table.new(HEADINGS, lines).to_text)

      # @return [String]
      def to_markdown = "## #{@application.name}\n\n#{words(Table.new(HEADINGS, lines).to_markdown)}"

      private

      def words(table)
        <<~TEXT
          #{@application.name}, #{@application.version}. #{pages}

          #{table}
          #{factors}

          PSS of all processes at the end: #{@memory.map { |name, size| "#{name} #{size.round} MB" }.join(", ")}.
        TEXT
      end

      def pages
        differing = @crawl.differing
        return "#{@crawl.paths.size} pages, equal but for tokens." if differing.empty?

        "#{@crawl.paths.size} pages; these differ: #{differing.join(", ")}."
      end

      def lines
        @results.map do |(clients, name), results|
          [clients, name, *%i[rate p50 p99 cpu].map { |field| format("%.1f", middle(results, field)) },
           results.sum(&:errors)].map(&:to_s)
        end
      end

      def middle(results, field) = Statistics.median(results.map(&field)) || Float::NAN

      # CPU a request beside each factor: a rate alone hides what the machine paid.
      def factors
        @results.keys.group_by(&:first).map do |clients, keys|
          own, heddle = keys.map { |key| @results[key] }
          rate, cpu = %i[rate cpu].map { |field| middle(heddle, field) / middle(own, field) }
          words = "%<clients>d clients: %<rate>.2f × the requests/s, %<cpu>.2f × the CPU a request."
          format(words, clients:, rate:, cpu:)
        end.join("\n")
      end
    end
  end
end
