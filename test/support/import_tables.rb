# frozen_string_literal: true

require "rbconfig"

# The import tables of the calling process (Linux, 64 bits), and changes of the modules of Ruby's core. Needs nothing of
# the project, so that a plain Ruby can be asked, too.
module ImportTables
  # An object that is loaded.
  Loaded = Struct.new(:path, :base, :ranges)

  DYNAMIC = 2
  # Entries of the dynamic section.
  PLT_SIZE, STRINGS, SYMBOLS, RELA, RELA_SIZE, JUMPS = 2, 5, 6, 7, 8, 23
  # Relocations that hold the address of a function: GLOB_DAT and JUMP_SLOT on x86-64 and ARM64.
  KINDS = [6, 7, 1025, 1026].freeze

  class << self
    # With LD_BIND_NOW=1 every slot is bound.
    # @return [Hash{String => Hash{String => String}}] file => "symbol@offset" => "file+offset" that the slot leads to
    def read
      objects = loaded
      File.open("/proc/self/mem", "rb") do |memory|
        objects.to_h { |object| [object.path, slots(memory, object).transform_values { |to| name(objects, to) }] }
      end
    end

    # @return [Hash{String => Array}] name => its ancestors and its singleton class's, and the methods of both that are
    #   defined below `folder`
    def core(names, folder)
      names.to_h do |name|
        mod = Object.const_get(name)
        sides = [mod, mod.singleton_class]
        methods = sides.flat_map do |side|
          (side.instance_methods(false) + side.private_instance_methods(false)).select do |one|
            side.instance_method(one).source_location&.first.to_s.start_with?(folder)
          end
        end
        [name, [*sides.map { |side| side.ancestors.map(&:inspect).grep(/Heddle/) }, methods.map(&:to_s)]]
      end
    end

    # @return [Array<String>] the modules of a Ruby that has loaded nothing
    def core_names
      code = "puts ObjectSpace.each_object(Module).filter_map { |mod| Module.instance_method(:name).bind_call(mod) }"
      IO.popen([RbConfig.ruby, "--disable=gems", "-e", code], &:read).split("\n").select do |name|
        Object.const_get(name).is_a?(Module)
      rescue NameError
        false
      end
    end

    private

    def loaded
      found = {}
      File.foreach("/proc/self/maps") do |line|
        range, _, offset, _, _, path = line.chomp.split(" ", 6)
        next unless path&.start_with?("/")

        first, last = range.split("-").map(&:hex)
        object = (found[path] ||= Loaded.new(path, nil, []))
        object.base ||= first if offset.hex.zero?
        object.ranges << (first...last)
      end
      found.values.select { |one| one.base && File.file?(one.path) && File.binread(one.path, 4) == "\x7FELF".b }
    end

    def slots(memory, object)
      table = dynamic(memory, object)
      return {} unless table[SYMBOLS] && table[STRINGS]

      [[JUMPS, PLT_SIZE], [RELA, RELA_SIZE]].each_with_object({}) do |(start, size), all|
        next unless table[start]

        at(memory, address(object, table[start]), table[size]).unpack("Q<*").each_slice(3) do |offset, info, _|
          next unless KINDS.include?(info & 0xffffffff)

          all["#{symbol(memory, object, table, info >> 32)}@#{offset.to_s(16)}"] =
            at(memory, object.base + offset, 8).unpack1("Q<")
        end
      end
    end

    def dynamic(memory, object)
      header = at(memory, object.base, 64)
      start, size, count = header[32, 8].unpack1("Q<"), *header[54, 4].unpack("S<2")
      part = Array.new(count) { |i| at(memory, object.base + start + (i * size), size) }
                  .find { |one| one.unpack1("L<") == DYNAMIC } or return {}
      where = part[16, 8].unpack1("Q<")
      where += object.base if header[16, 2].unpack1("S<") == 3 # ET_DYN
      at(memory, where, part[40, 8].unpack1("Q<")).unpack("Q<*").each_slice(2).take_while { |tag, _| tag != 0 }.to_h
    end

    # glibc relocates these addresses, musl does not.
    def address(object, value) = value < object.base ? object.base + value : value

    def symbol(memory, object, table, index)
      name = at(memory, address(object, table[SYMBOLS]) + (index * 24), 4).unpack1("L<")
      at(memory, address(object, table[STRINGS]) + name, 80)[/\A[^\0]*/]
    end

    def at(memory, where, size) = memory.pread(size, where)

    def name(objects, address)
      object = objects.find { |one| one.ranges.any? { |range| range.cover?(address) } }
      object ? "#{object.path}+#{(address - object.base).to_s(16)}" : "elsewhere"
    end
  end
end
