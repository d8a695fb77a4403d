# frozen_string_literal: true

module Heddle
  class Server
    # Tells people of requests that go on for too long.
    module Served
      # This many are listed; the others are counted.
      MOST = 5
      private_constant :MOST

      # @param served [Array<Array>] see {Server#served}
      # @return [String, nil] the longest first; nil when there are none
      def self.list(served)
        requests = served.map { |_, request| request }
        lines = requests.max_by(MOST) { |_, _, age| age }.map do |method, target, age|
          "#{method} #{target} for #{age.round(1)} s"
        end
        lines << "#{requests.size - MOST} more" if requests.size > MOST
        lines.join(", ") if lines.any?
      end
    end
  end
end
