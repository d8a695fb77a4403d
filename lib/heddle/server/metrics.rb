# frozen_string_literal: true

module Heddle
  class Server
    # Writes the server's metrics in Prometheus' text format (version 0.0.4). {Families} and {SemanticConventions}
    # define them. Every worker has its own series, so a new worker resets only the counters of the worker that it
    # replaces.
    class Metrics
      Autoloads.add(self, "heddle/server/metrics")

      TYPE = "text/plain; version=0.0.4; charset=utf-8"

      # @param report [Hash{Symbol => Object}] `workers`: for each worker its {WorkerStatus#to_h} and its `index`;
      #   `master`: the statistics of the master, or nil if there is no master; `certificates`:
      #   {Net::TLS::Certificates#expiries}
      def initialize(report)
        # While one worker replaces another, both have the same index. The younger one is listed as soon as it reports
        # its uptime.
        workers = report[:workers].group_by { |one| one[:index] }.map do |_, all|
          all.min_by { |one| one[:uptime] || Float::INFINITY }
        end
        @report = { master: report[:master], certificates: report[:certificates].to_a, workers: }
        @out = +""
      end

      # @return [String]
      def to_s
        Families::TABLE.each { |scope, families| families.each { |name, *rest| write(scope, "heddle_#{name}", *rest) } }
        SemanticConventions::TABLE.each { |scope, families| families.each { |family| write(scope, *family) } }
        @out
      end

      private

      # Leaves out a family of the master if it has no samples. Other families have their HELP and TYPE lines even
      # without samples.
      def write(scope, name, help, source)
        samples = records(scope).flat_map do |record, labels|
          values(source, record).map { |value, own, suffix| sample("#{name}#{suffix}", value, **labels, **own.to_h) }
        end
        return if scope == :master && samples.empty?

        @out << "# HELP #{name} #{help}\n# TYPE #{name} #{type(name)}\n" << samples.join
      end

      def type(name)
        case name
        when /duration_seconds\z/ then "histogram"
        when /_total\z/ then "counter"
        else "gauge"
        end
      end

      # @return [Array<Array(Hash, Hash)>] the records that a scope's families are read from, each with its labels
      def records(scope)
        case scope
        when :report then [[@report, {}]]
        when :master then [*@report[:master]&.then { |master| [[master, {}]] }]
        when :worker then @report[:workers].map { |one| [one, { worker: one[:index] }] }
        else parts(scope)
        end
      end

      # A worker that does not respond to the master reports neither pools nor HTTP clients.
      def parts(scope)
        key, labels = Families::PARTS.fetch(scope)
        @report[:workers].flat_map do |one|
          one[key].to_a.map { |part| [part, { worker: one[:index], **labels.call(part) }] }
        end
      end

      def values(source, record)
        found = case source
                when Proc then source.call(record)
                when Hash then source.map { |path, labels| [record.dig(*path), labels] }
                else record.dig(*source)
                end
        (found.is_a?(Array) ? found : [[found]]).select(&:first)
      end

      def sample(name, value, **labels)
        pairs = labels.map do |label, text|
          "#{label}=\"#{text.to_s.gsub(/[\\"\n]/, "\\" => "\\\\", "\"" => "\\\"", "\n" => "\\n")}\""
        end
        "#{name}#{"{#{pairs.join(",")}}" if pairs.any?} #{value}\n"
      end
    end
  end
end
