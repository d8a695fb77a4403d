# frozen_string_literal: true

require "heddle/cgroup"

module Heddle
  module Offload
    # How many offload threads a process may have, unless the application has set {Offload.thread_limit=}.
    #
    # @api private
    module ThreadLimit
      # Threads of one process.
      DEFAULT = 512

      # @param workers [Integer] processes that share the container's limit
      # @param root [String] where the system's files are
      # @return [Integer] {DEFAULT}, or each worker's share of the container's tasks if that is less; at least 1
      def self.default(workers: 1, root: "/")
        share = pids_max(root)&.div(workers)
        [DEFAULT, share].compact.min.clamp(1, DEFAULT)
      end

      # @return [Integer, nil] the smallest limit of tasks of the control groups of this process; nil without one
      def self.pids_max(root = "/")
        Cgroup.read(root, "pids", "pids.max", "pids.max").filter_map { |text| text[/\A\d+/]&.to_i }.min
      end
    end
  end
end
