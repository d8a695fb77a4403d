# frozen_string_literal: true

# Reads Prometheus' text format, version 0.0.4, and refuses what does not follow it to the letter.
module PrometheusText
  NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/
  LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/
  SAMPLE = /\A(#{NAME})(?:\{((?:#{LABEL}(?:,|(?=\})))*)\})? (\S+)\z/
  HELP = /\A# HELP (#{NAME}) (.*)\z/
  TYPE = /\A# TYPE (#{NAME}) (\w+)\z/
  VALUE = /\A(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\z/
  TYPES = %w[counter gauge histogram summary untyped].freeze

  class Malformed < StandardError
  end

  class << self
    # @return [Hash{String => Hash{Hash => Float}}] each name's samples by their labels
    def parse(text)
      raise Malformed, "does not end with a line end" unless text.end_with?("\n")

      families = {}
      samples = Hash.new { |found, name| found[name] = {} }
      current = nil
      text.each_line(chomp: true) do |line|
        if (help = HELP.match(line))
          raise Malformed, "twice: #{line}" if families.key?(help[1])

          current = help[1]
          families[current] = nil
        elsif (type = TYPE.match(line))
          raise Malformed, "TYPE without HELP: #{line}" unless current == type[1] && families[current].nil?
          raise Malformed, line unless TYPES.include?(type[2])

          families[current] = type[2]
        else
          add(samples, families, current, line)
        end
      end
      check_histograms(samples, families)
      samples
    end

    private

    def add(samples, families, family, line)
      match = SAMPLE.match(line) or raise Malformed, "no sample: #{line}"
      name = match[1]
      labels = match[2].to_s.scan(LABEL).to_h
      raise Malformed, "no value: #{line}" unless VALUE.match?(match[5])

      suffixes = families[family] == "histogram" ? %w[_bucket _sum _count] : [""]
      raise Malformed, "#{name} stands among #{family}" unless suffixes.any? { |suffix| name == family + suffix }
      raise Malformed, "twice: #{line}" if samples[name].key?(labels)
      if families[family] == "counter" && !name.end_with?("_total")
        raise Malformed, "a counter's name ends in _total: #{name}"
      end

      samples[name][labels] = Float(match[5])
    end

    def check_histograms(samples, families)
      families.select { |_, type| type == "histogram" }.each_key do |name|
        samples["#{name}_bucket"].group_by { |labels, _| labels.except("le") }.each do |labels, buckets|
          bounds = buckets.map { |bucket, _| bucket["le"] == "+Inf" ? Float::INFINITY : Float(bucket["le"]) }
          counts = buckets.map(&:last)
          raise Malformed, "#{name}: bounds #{bounds}" unless bounds == bounds.sort && bounds.last == Float::INFINITY
          raise Malformed, "#{name}: buckets don't rise" unless counts == counts.sort
          raise Malformed, "#{name}: count" unless samples["#{name}_count"].fetch(labels) == counts.last

          samples["#{name}_sum"].fetch(labels)
        end
      end
    end
  end
end
