# frozen_string_literal: true

module Heddle
  class Server
    # Describes the running requests in log lines.
    module RunningRequests
      # Maximum number of requests that are listed. The others are only counted.
      LIMIT = 5
      private_constant :LIMIT

      # @param running [Array<Array>] see {Server#running_requests}
      # @return [String, nil] the longest-running request first; nil when there are none
      def self.describe(running)
        requests = running.map { |_, request| request }
        lines = requests.max_by(LIMIT) { |_, _, age| age }.map do |method, target, age|
          "#{method} #{target} for #{age.round(1)} s"
        end
        lines << "#{requests.size - LIMIT} more" if requests.size > LIMIT
        lines.join(", ") if lines.any?
      end
    end
  end
end
