# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# HPACK against python3-hpack: random blocks mean the same to both.
class HpackDifferentialTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  SUPPORT = File.join(__dir__, "support")
  SOURCES = %w[hpack_decoder hpack_encoder hpack_table huffman tables].map { |name| "ext/heddle/http/h2/#{name}.c" }
  # The system's own, which has Debian's packages.
  PYTHON = "/usr/bin/python3"
  SECONDS = ENV["CI"] ? "10" : "1"
  SEED = RUBY_VERSION.delete(".")

  def test_blocks_mean_the_same_to_python3_hpack
    installed = system(PYTHON, "-c", "import hpack", err: File::NULL)
    skip "python3-hpack is not installed (bin/setup --system)" unless installed

    Dir.mktmpdir do |folder|
      program = File.join(folder, "hpack_peer")

      assert system(ENV.fetch("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE=1", "-g", "-O1", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=undefined", "-Iext/heddle", "-o", program,
                    File.join(SUPPORT, "hpack_peer.c"), *SOURCES, chdir: ROOT)
      output, status = Open3.capture2e(PYTHON, File.join(SUPPORT, "hpack_differential.py"), program, SECONDS, SEED)

      assert_predicate status, :success?, output
      assert_match(/\A[1-9]\d+ blocks, [1-9]/, output)
    end
  end
end
