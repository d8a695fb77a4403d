# frozen_string_literal: true

module Heddle
  module Offload
    # How many offload threads a process may have, unless the application has set {Offload.thread_limit=}.
    #
    # @api private
    module ThreadLimit
      # Threads of one process.
      DEFAULT = 512

      class << self
        # @param workers [Integer] processes that share what the container may have
        # @param root [String] where the system's files are
        # @return [Integer] {DEFAULT}, or each worker's share of the container's tasks if that is less; 1 at least
        def default(workers: 1, root: "/")
          share = pids_max(root)&.div(workers)
          [DEFAULT, share].compact.min.clamp(1, DEFAULT)
        end

        # @return [Integer, nil] the smallest limit of tasks of the control groups that this process is in (cgroup v2
        #   and v1); nil without one
        def pids_max(root = "/")
          File.foreach(File.join(root, "proc/self/cgroup")).flat_map { |line| limits(root, line) }.min
        rescue SystemCallError
          nil
        end

        private

        # A line is "number:controllers:path"; in v2 the controllers are empty. A container may see the path as its
        # host does, and its own group as the root.
        def limits(root, line)
          _, controllers, path = line.chomp.split(":", 3)
          return [] unless path && (controllers.empty? || controllers.split(",").include?("pids"))

          base = File.join(root, "sys/fs/cgroup", controllers.empty? ? "" : "pids")
          parents = path.split("/").reject(&:empty?)
          (0..parents.size).filter_map { |depth| read(File.join(base, *parents.first(depth), "pids.max")) }
        end

        def read(file)
          text = File.read(file).strip
          Integer(text, 10) unless text == "max"
        rescue SystemCallError, ArgumentError
          nil
        end
      end
    end
  end
end
