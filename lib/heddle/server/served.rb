# frozen_string_literal: true

module Heddle
  class Server
    # Tells people of requests that go on for too long.
    module Served
      # As many are told of; the others are counted.
      MOST = 5
      private_constant :MOST

      # @param served [Array<Array>] see {Server#served}
      # @return [String, nil] the longest first; nil when there are none
      def self.list(served)
        requests = served.map { |_, request| request }
        told = requests.max_by(MOST) { |_, _, age| age }.map do |method, target, age|
          "#{method} #{target} for #{age.round(1)} s"
        end
        told << "#{requests.size - MOST} more" if requests.size > MOST
        told.join(", ") if told.any?
      end
    end
  end
end
