# frozen_string_literal: true

require "fiddle"
require "json"

# How much memory this process has, and what for. It collects all garbage and returns freed memory every 30 s, as few
# requests make few collections; then it writes the sizes to a file, for the test to read. A reader that measured by its
# own clock would for half an hour on end come just before a collection, and then just after.
module Parts
  INTERVAL = 30
  # Number by which jemalloc means all of its arenas.
  ALL = 4_096
  private_constant :INTERVAL, :ALL

  class << self
    # Once in each process.
    def watch
      return if @thread&.alive?

      @thread = Thread.new do
        loop do
          sleep INTERVAL
          give_back
          write
        end
      end
    end

    private

    def give_back
      GC.start
      jemalloc? ? mallctl.call("arena.#{ALL}.purge", nil, nil, nil, 0) : trim.call(0)
    end

    def write
      path = File.join(ENV.fetch("SOAK_PARTS"), Process.pid.to_s)
      File.write("#{path}.new", JSON.generate(to_h))
      File.rename("#{path}.new", path)
    end

    # => bytes; YJIT's own, which it has of malloc, are not counted twice
    def to_h
      jit = bytes_of_jit
      anonymous, freed, own = resident("Anonymous", "LazyFree", "Private_Dirty")
      { "memory" => anonymous - freed, "own" => own, "YJIT" => jit.sum,
        "pages of objects" => GC.stat(:heap_allocated_pages) * 65_536, "malloc" => bytes_in_use - jit.last }
    end

    # Reads them at once: the kernel walks through all pages for it.
    def resident(*names)
      rollup = File.read("/proc/self/smaps_rollup")
      names.map { |name| rollup[/^#{name}: +(\d+)/, 1].to_i * 1_024 }
    end

    # => code, and what is noted about it
    def bytes_of_jit
      return [0, 0] unless defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?

      RubyVM::YJIT.runtime_stats.values_at(:code_region_size, :yjit_alloc_size)
    end

    # Of all blocks that are given out.
    def bytes_in_use
      unless jemalloc?
        room = "\0" * 80
        mallinfo.call(room)
        return room.unpack("Q10").values_at(4, 7).sum # mappings of their own, and others
      end

      mallctl.call("epoch", nil, nil, [1].pack("Q"), 8)
      room = "\0" * 8
      mallctl.call("stats.allocated", room, [8].pack("Q"), nil, 0)
      room.unpack1("Q")
    end

    def jemalloc? = !mallctl.nil?

    def mallctl
      @mallctl ||= function("mallctl", ([Fiddle::TYPE_VOIDP] * 4) + [Fiddle::TYPE_SIZE_T])
    end

    def trim = @trim ||= function("malloc_trim", [Fiddle::TYPE_SIZE_T])

    # It returns a struct by a hidden argument on x86-64.
    def mallinfo = @mallinfo ||= function("mallinfo2", [Fiddle::TYPE_VOIDP])

    def function(name, arguments)
      Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, Fiddle::TYPE_INT)
    rescue Fiddle::DLError
      nil
    end
  end
end
