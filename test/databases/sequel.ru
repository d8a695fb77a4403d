# frozen_string_literal: true

require "sequel"

run(->(_env) { [200, {}, [Sequel.current.class.name]] })
