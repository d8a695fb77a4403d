# frozen_string_literal: true

module Heddle
  module CLI
    class StatusText
      # Formats values for people.
      module Format
        class << self
          # @param seconds [Numeric, nil]
          # @return [String]
          def duration(seconds)
            return "" unless seconds
            return "#{(seconds * 1_000).round(1)} ms" if seconds < 1
            return "#{seconds.round(1)} s" if seconds < 120
            return "#{(seconds / 60).floor} min" if seconds < 7_200

            seconds < 172_800 ? "#{(seconds / 3_600).floor} h" : "#{(seconds / 86_400).floor} d"
          end

          # @param count [Integer, nil]
          # @return [String]
          def bytes(count) = count ? "#{(count / 1_048_576.0).round} MB" : ""

          # @param number [Numeric]
          # @return [String]
          def rate(number)
            number < 100 ? number.round(1).to_s : number.round.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
          end

          # @param path [String, nil] a file and line
          # @return [String] the path, relative to the current folder if it is inside
          def place(path) = path.to_s.delete_prefix("#{Dir.pwd}/")
        end
      end
    end
  end
end
