# frozen_string_literal: true

require "etc"

module Heddle
  class Server
    # How many processors this process may use: those of the machine, less what its affinity or its
    # container takes away.
    module Cores
      # @param root [String] where the system's folders are
      # @return [Integer] at least 1
      def self.available(root = "/")
        [Etc.nprocessors, *quotas(root)].min.clamp(1..)
      end

      # A container that may use 1.5 processors gets 2 workers: the half would be idle otherwise.
      def self.quotas(root)
        groups = read(root, "proc/self/cgroup").to_s.lines(chomp: true).map { |line| line.split(":", 3) }
        groups.flat_map do |_, controllers, path|
          steps = path.to_s.split("/").reject(&:empty?)
          folders = (0..steps.size).map { |depth| steps.first(depth) }
          next folders.filter_map { |names| second_version(root, names) } if controllers == ""
          next [] unless controllers.to_s.split(",").include?("cpu")

          folders.filter_map { |names| first_version(root, names) }
        end
      end

      def self.second_version(root, names)
        quota, period = read(root, "sys/fs/cgroup", *names, "cpu.max").to_s.split
        share(quota, period)
      end

      def self.first_version(root, names)
        share(read(root, "sys/fs/cgroup/cpu", *names, "cpu.cfs_quota_us"),
              read(root, "sys/fs/cgroup/cpu", *names, "cpu.cfs_period_us"))
      end

      def self.share(quota, period)
        quota.to_i.fdiv(period.to_i).ceil if quota.to_i.positive? && period.to_i.positive?
      end

      def self.read(root, *names)
        File.read(File.join(root, *names))
      rescue SystemCallError
        nil
      end
      private_class_method :quotas, :second_version, :first_version, :share, :read
    end
  end
end
