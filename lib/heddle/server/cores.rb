# frozen_string_literal: true

require "heddle/cgroup"

module Heddle
  class Server
    # Finds out how many processors this process may use. Its CPU affinity and its container may allow fewer than the
    # machine has.
    module Cores
      # @param root [String] the folder that contains proc and sys: "/", except in tests
      # @return [Integer] at least 1
      def self.available(root = "/")
        [Etc.nprocessors, *quotas(root)].min.clamp(1..)
      end

      # Returns the quotas of the container, rounded up: with 1.5 processors and only one worker, half a processor would
      # be idle.
      def self.quotas(root)
        Cgroup.read(root, "cpu", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us").filter_map do |text|
          quota, period = text.split.map(&:to_i)
          quota.fdiv(period).ceil if quota&.positive? && period&.positive?
        end
      end
      private_class_method :quotas
    end
  end
end
