# frozen_string_literal: true

require "open3"

# A part of HTTP/2 in C, and a script that compares it with a library of Python's.
class Differential
  ROOT = File.expand_path("../../../..", __dir__)
  # The system's own, which has Debian's packages.
  PYTHON = "/usr/bin/python3"
  FLAGS = %w[-std=gnu17 -D_GNU_SOURCE=1 -DHEDDLE_DEBUG=1 -g -O1 -fsanitize=address,undefined
             -fno-sanitize-recover=undefined -Iext/heddle].freeze

  # @return [Differential] of header blocks
  def self.hpack = new("hpack", "hpack", %w[http/h2/hpack_*.c http/h2/huffman.c http/h2/tables.c])

  # @return [Differential] of frames
  def self.frames
    new("frames", "h2", %w[http/h2/*.c http/text.c http/fields.c http/control_fields.c http/content_length.c
                           http/transfer_encoding.c http/target.c http/authority.c http/rejection.c
                           http/request_limits.c])
  end

  # @param name [String] of the script and the program, NAME_differential.py and NAME_peer.c
  # @param library [String] what the script requires
  # @param sources [Array<String>] patterns, relative to ext/heddle
  def initialize(name, library, sources)
    @name = name
    @library = library
    @sources = sources.flat_map { |pattern| Dir[File.join(ROOT, "ext/heddle", pattern)] }
  end

  def installed? = system(PYTHON, "-c", "import #{@library}", err: File::NULL)

  # Builds the program in a folder, with sanitizers.
  # @return [Boolean]
  def build(folder)
    @program = File.join(folder, "#{@name}_peer")
    system(*ENV.fetch("CC", "cc").split, *FLAGS, "-o", @program, File.join(__dir__, "#{@name}_peer.c"), *@sources,
           chdir: ROOT)
  end

  # @return [Array<String>] of the comparison
  def command(*arguments)
    [PYTHON, File.join(__dir__, "#{@name}_differential.py"), @program, *arguments.map(&:to_s)]
  end

  # @return [Array(String, Process::Status)] what the script prints
  def run(*arguments) = Open3.capture2e(*command(*arguments))
end
