# frozen_string_literal: true

# Serves the programs of one gem of gems.yml, which STATE_GEM names: a request for /LINE?NUMBER runs a program, and gets
# what it found before, and what it saw in the end.

require "yaml"
require "stringio"
require "logger"

row = YAML.load_file(File.join(__dir__, "gems.yml")).find { |one| one["gem"] == ENV.fetch("STATE_GEM") }
row["require"].each { |name| require name }
TOPLEVEL_BINDING.eval(row["setup"]) if row["setup"]

# Where requests meet.
class Meeting
  SIZE = 20

  def initialize = @here = 0

  # Waits for the nineteen others, if they are here at the same time.
  def wait
    round = (@here += 1).fdiv(SIZE).ceil
    200.times { @here < round * SIZE ? sleep(0.01) : break }
    raise "the requests do not overlap" if @here < round * SIZE
  end
end

# What a program sees.
class Scene
  def initialize
    @meeting = Meeting.new
  end

  def pause = @meeting.wait
end

programs = row["lines"].map do |line|
  scene = Scene.new
  fresh = "-> { #{line["fresh"]} }"
  program = "->(own, number) { #{line["program"]}\n }"
  [fresh, program].map { |code| scene.instance_eval(code, __FILE__, __LINE__) }
end

run(lambda do |env|
  fresh, program = programs.fetch(env["PATH_INFO"].delete_prefix("/").to_i)
  number = env["QUERY_STRING"].to_i
  before = fresh.call.inspect
  [200, {}, ["#{before}\n#{program.call("tenant#{number}", number)}"]]
end)
