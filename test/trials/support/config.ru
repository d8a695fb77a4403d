# frozen_string_literal: true

# What a trial serves: requests that wait, compute in Ruby and in native code, with Ruby's lock and without it, and load
# files.

require "bcrypt"
require "json"
require "openssl"
require "tmpdir"
require "zlib"

# Named, so that a profile shows it.
module TrialWork
  TEXT = ("a".."z").to_a.join * 4000

  module_function

  def compute_in_ruby
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.03
    sum = 0
    sum += 1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    "ruby"
  end

  def hash_a_password = BCrypt::Password.create("secret", cost: 6) == "secret" ? "bcrypt" : "wrong"

  def compress = Zlib::Inflate.inflate(Zlib::Deflate.deflate(TEXT)) == TEXT ? "zlib" : "wrong"

  def make_a_key = OpenSSL::PKey::RSA.new(1024).private? ? "rsa" : "wrong"

  def lock
    File.open(File.join(Dir.tmpdir, "heddle-trial-#{Process.pid}"), "w") do |file|
      file.flock(File::LOCK_EX)
      sleep 0.001
    end
    "flock"
  end

  def wait
    sleep 0.01
    "sleep"
  end

  # Until one conversion takes longer than what counts as a stall (0.05 s), of processor time, which other processes
  # don't make longer.
  def number_that_takes_long
    number = 3**100_000
    loop do
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      number.to_s
      return number if Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before > 0.07

      number *= 3**100_000
    end
  end

  # In one call, which nothing interrupts.
  def hold_the_lock = NUMBER.to_s.end_with?((NUMBER % 1000).to_s) ? "hold" : "wrong"

  def allocate = Array.new(2000) { |i| "text #{i}" * 10 }.size == 2000 ? "garbage" : "wrong"

  KINDS = {
    "ruby" => :compute_in_ruby, "bcrypt" => :hash_a_password, "zlib" => :compress, "rsa" => :make_a_key,
    "flock" => :lock, "sleep" => :wait, "garbage" => :allocate,
    "hold" => :hold_the_lock
  }.freeze
  NUMBER = number_that_takes_long
end

require ENV["TRIAL_TOOL"] if ENV["TRIAL_TOOL"]

run(lambda do |env|
  _, what, name = env["PATH_INFO"].split("/")
  answer = what == "work" ? TrialWork.public_send(TrialWork::KINDS.fetch(name)) : TrialTool.public_send(what)
  [200, { "content-type" => "text/plain" }, [answer]]
end)
