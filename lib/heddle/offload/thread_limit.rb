# frozen_string_literal: true

require "heddle/cgroup"

module Heddle
  module Offload
    # The default of {Offload.thread_limit}, the maximum number of offload threads of a process.
    #
    # @api private
    module ThreadLimit
      # The maximum number of offload threads in one process, if the container allows as many.
      DEFAULT = 512

      # @param workers [Integer] number of processes that share the container's limit
      # @param root [String] root of the file system
      # @return [Integer] {DEFAULT}, or each worker's share of the container's limit of tasks if that is less; at least
      #   1
      def self.default(workers: 1, root: "/")
        share = pids_max(root)&.div(workers)
        [DEFAULT, share].compact.min.clamp(1, DEFAULT)
      end

      # @return [Integer, nil] the lowest limit of tasks in the control groups of this process; nil: no limit
      def self.pids_max(root = "/")
        Cgroup.read(root, "pids", "pids.max", "pids.max").filter_map { |text| text[/\A\d+/]&.to_i }.min
      end
    end
  end
end
