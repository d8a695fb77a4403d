# frozen_string_literal: true

require "heddle/cgroup"

module Heddle
  class Server
    # How much memory processes use, and how much there is for the server. Known only on Linux.
    module Memory
      # The default limit as a share of the available memory.
      SHARE = 0.9
      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
      private_constant :SHARE, :PAGE

      # @param pid [Integer, String]
      # @param root [String] where the system's folders are
      # @return [Integer, nil] bytes of the process that are in memory
      def self.used(pid = "self", root: "/")
        File.read(File.join(root, "proc/#{pid}/statm")).split[1].to_i * PAGE
      rescue SystemCallError
        nil
      end

      # @param pid [Integer, String]
      # @param root [String] where the system's folders are
      # @return [Integer, nil] the process's proportional memory (PSS, proc(5)): of shared memory only this process's
      #   part, without freed pages that the kernel may take (LazyFree). A thousand ended fibers leave 50 MB of such
      #   pages. The kernel walks through all pages for it: 4 ms for 130 MB
      def self.proportional(pid = "self", root: "/")
        bytes(File.join(root, "proc/#{pid}/smaps_rollup"), "Pss", less: "LazyFree")
      end

      # @param limit [Integer, nil] bytes; nil: none
      # @param pid [Integer, String]
      # @param root [String] where the system's folders are
      # @return [Integer, nil] bytes to compare with the limit: {used}, which costs nothing to read, or, if that is
      #   above the limit, {proportional}, which is never more
      def self.compared(limit, pid = "self", root: "/")
        used = used(pid, root:)
        used && limit && used > limit ? proportional(pid, root:) || used : used
      end

      # @param root [String] where the system's folders are
      # @return [Integer, nil] bytes beyond which the server's processes would take memory from others, or the system
      #   would kill one of them
      def self.limit(root = "/")
        least = [*container_limits(root), bytes(File.join(root, "proc/meminfo"), "MemTotal")].compact.min
        least && (least * SHARE).to_i
      end

      def self.container_limits(root)
        Cgroup.read(root, "memory", "memory.max", "memory.limit_in_bytes").filter_map { |text| text[/\A\d+/]&.to_i }
      end

      def self.bytes(path, name, less: nil)
        sizes = File.read(path).scan(/^(\w+): +(\d+) kB/).to_h.transform_values(&:to_i)
        sizes[name] && ((sizes[name] - sizes.fetch(less, 0)) * 1_024)
      rescue SystemCallError
        nil
      end
      private_class_method :container_limits, :bytes
    end
  end
end
