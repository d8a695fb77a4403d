# frozen_string_literal: true

# LMDB's lock of writers belongs to the native thread that took it.

require "lmdb"
require "tmpdir"

Trials::Program.example("write transactions one after another") do |out|
  Dir.mktmpdir do |folder|
    environment = LMDB.new(folder)
    database = environment.database
    4.times { |number| environment.transaction { database["key #{number}"] = "value #{number}" } }
    out.puts database.get("key 0"), database.get("key 3")
    environment.close
  end
end
