# frozen_string_literal: true

require "etc"

module Bench
  # Where the figures come from: everything a reader needs to judge them, and nothing about the machine's owner.
  class Environment
    # @param yjit [Boolean] whether the children run with it
    def initialize(yjit:)
      @yjit = yjit
    end

    # @return [Boolean] whether this Ruby was built with YJIT
    def self.yjit? = defined?(RubyVM::YJIT) ? true : false

    # @return [Hash{String => String}]
    def to_h
      { "Ruby" => "#{RUBY_VERSION}p#{RUBY_PATCHLEVEL}, #{jit}", "kernel" => kernel, "processor" => processor,
        "cores" => Etc.nprocessors.to_s, "memory" => memory, "open files allowed" => open_files,
        "vm.max_map_count" => MapCount.current&.to_s, "load before the run" => load_before,
        "nice" => nice, "date" => Time.now.utc.strftime("%Y-%m-%d") }.compact
    end

    private

    def jit
      return "+YJIT" if @yjit

      Environment.yjit? ? "YJIT switched off" : "built without YJIT"
    end

    # The part after the version often names a host's product.
    def kernel = Etc.uname.then { |name| "#{name[:sysname]} #{name[:release][/\A[\d.]+/]} #{name[:machine]}" }

    def processor = proc_field("/proc/cpuinfo", "model name")

    def memory
      kilobytes = proc_field("/proc/meminfo", "MemTotal")
      kilobytes && "#{(kilobytes.to_i / 1_048_576.0).round} GiB"
    end

    def open_files = Process.getrlimit(Process::RLIMIT_NOFILE).first.to_s

    def load_before
      File.read("/proc/loadavg").split.first
    rescue Errno::ENOENT
      nil
    end

    # Processes of a higher priority than other programs' hardly notice those: a load then says little.
    def nice = Process.getpriority(Process::PRIO_PROCESS, 0).then { |value| value.to_s unless value.zero? }

    def proc_field(path, field)
      line = File.foreach(path).find { |text| text.start_with?(field) }
      line && line.split(":", 2).last.strip
    rescue Errno::ENOENT
      nil
    end
  end
end
