# frozen_string_literal: true

require "etc"

module Heddle
  class Server
    # How much memory processes use, and how much there is for the server. Linux tells; elsewhere nothing is known.
    module Memory
      # The default limit as a share of the available memory.
      SHARE = 0.9
      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
      private_constant :SHARE, :PAGE

      # @param pid [Integer, String]
      # @return [Integer, nil] bytes of the process that are in memory
      def self.used(pid = "self")
        File.read("/proc/#{pid}/statm").split[1].to_i * PAGE
      rescue SystemCallError
        nil
      end

      # @param pid [Integer, String]
      # @return [Integer, nil] the same, but of memory that several processes share only this one's part (PSS, proc(5)).
      #   The kernel walks through all pages for it: 4 ms for 130 MB
      def self.proportional(pid = "self")
        kilobytes = File.read("/proc/#{pid}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1]
        kilobytes && (kilobytes.to_i * 1_024)
      rescue SystemCallError
        nil
      end

      # @param root [String] where the system's folders are
      # @return [Integer, nil] bytes above which the server's processes together would be in the way of others, or
      #   one of them would be ended
      def self.limit(root = "/")
        least = [*container_limits(root), total(root)].compact.min
        least && (least * SHARE).to_i
      end

      # The limits of this process's group and of those around it.
      def self.container_limits(root)
        groups = read(root, "proc/self/cgroup").to_s.lines(chomp: true).map { |line| line.split(":", 3) }
        groups.flat_map do |_, controllers, path|
          if controllers.empty? then limits_in(root, "sys/fs/cgroup", path, "memory.max")
          elsif controllers.split(",").include?("memory")
            limits_in(root, "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
          else []
          end
        end
      end

      def self.limits_in(root, mount, path, name)
        steps = path.split("/").reject(&:empty?)
        (0..steps.size).filter_map do |depth|
          read(root, File.join(mount, *steps.first(depth), name))&.slice(/\A\d+/)&.to_i
        end
      end

      def self.total(root)
        kilobytes = read(root, "proc/meminfo").to_s[/^MemTotal:\s+(\d+) kB/, 1]
        kilobytes && (kilobytes.to_i * 1_024)
      end

      def self.read(root, path)
        File.read(File.join(root, path))
      rescue SystemCallError
        nil
      end
      private_class_method :container_limits, :limits_in, :total, :read
    end
  end
end
