# frozen_string_literal: true

# test: long
# test: nightly

require_relative "support/trial_server"

# Profilers, caches and allocators that people put into a server, as they are, beside every protection: the server
# answers what it should, and the tool sees what it should.
class TrialToolsTest < Minitest::Test
  include TrialServer

  %w[cpu wall object].each do |mode|
    define_method("test_stackprof_by_#{mode}") do
      need_gem "stackprof"
      with_server("stackprof") do |server|
        server.ask(mode)
        work(server)
        profile = JSON.parse(server.ask("stop"))

        assert_operator profile["samples"], :>, 10
        assert_includes profile["names"].join(" "), mode == "object" ? "allocate" : "compute_in_ruby"
      end
    end
  end

  def test_vernier
    need_gem "vernier"
    with_server("vernier") do |server|
      server.ask("start")
      work(server)
      profile = JSON.parse(server.ask("stop"))

      assert_match(/compute_in_ruby/, JSON.generate(profile))
      assert_operator profile["threads"].sum { |thread| thread["samples"]["length"].to_i }, :>, 10
    end
  end

  # Cold, then with what the first server kept.
  def test_bootsnap
    need_gem "bootsnap"
    Dir.mktmpdir do |folder|
      make_files(File.join(folder, "lib"))
      2.times do
        with_server("bootsnap", processes: 2, environment: { "TRIAL_FOLDER" => folder }) do |server|
          work(server, more: ["load_one"] * 3)

          assert_operator server.ask("cached").to_i, :>, 10
        end
      end
    end
  end

  def test_jemalloc
    library = need_library("libjemalloc.so.2", "libjemalloc2")
    with_server("memory", processes: 2, environment: { "LD_PRELOAD" => library }) do |server|
      assert_equal "jemalloc", server.ask("allocator")
      work(server)
    end
  end

  private

  def make_files(folder)
    FileUtils.mkdir_p(folder)
    200.times do |number|
      File.write(File.join(folder, "trial_file_#{number}.rb"), "module TrialFile#{number}; NUMBER = #{number}; end\n")
      File.write(File.join(folder, "trial_file_#{number}.yml"), "- #{number}\n")
    end
  end
end
