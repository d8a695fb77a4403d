# frozen_string_literal: true

require "heddle/cgroup"

module Heddle
  class Server
    # How much memory processes use, and how much the server may use. Known only on Linux.
    module Memory
      # The share of the machine's or container's memory that is the default limit.
      SHARE = 0.9
      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
      private_constant :SHARE, :PAGE

      # @param pid [Integer, String]
      # @param root [String] the folder that contains proc and sys: "/", except in tests
      # @return [Integer, nil] the process's resident memory (RSS) in bytes; nil: not known
      def self.used(pid = "self", root: "/")
        File.read(File.join(root, "proc/#{pid}/statm")).split[1].to_i * PAGE
      rescue SystemCallError
        nil
      end

      # @param pid [Integer, String]
      # @param root [String] the folder that contains proc and sys: "/", except in tests
      # @return [Integer, nil] the process's proportional memory (PSS, proc(5)) in bytes, which counts shared pages by
      #   the process's share; nil: not known. Freed pages that the kernel has not reclaimed yet (LazyFree) are
      #   subtracted: a thousand ended fibers leave 50 MB of them. Reading the PSS is expensive, because the kernel
      #   visits all pages: 4 ms for 130 MB
      def self.proportional(pid = "self", root: "/")
        bytes(File.join(root, "proc/#{pid}/smaps_rollup"), "Pss", less: "LazyFree")
      end

      # @param limit [Integer, nil] bytes; nil: there is no limit
      # @param pid [Integer, String]
      # @param root [String] the folder that contains proc and sys: "/", except in tests
      # @return [Integer, nil] the bytes to compare with the limit; nil: not known. {used} is cheap to read, and
      #   {proportional} is never higher. So {proportional} is read only if {used} exceeds the limit.
      def self.compared(limit, pid = "self", root: "/")
        used = used(pid, root:)
        used && limit && used > limit ? proportional(pid, root:) || used : used
      end

      # @param root [String] the folder that contains proc and sys: "/", except in tests
      # @return [Integer, nil] how many bytes the server's processes may use, so that the system need not kill one of
      #   them; nil: not known
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
